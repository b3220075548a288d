/* SPDX-License-Identifier: MIT */
/* Learns to read handwritten digits, then hands the memory of training back.
 *
 *   train_digits [--device NAME] [--steps N] [--data FILE] [--json]
 *
 * 1,797 digits of 8 x 8 pixels (Alpaydin and Kaynak, UCI 1998), as scikit-learn brings
 * them: digits.csv.gz, which tools/setup puts into build/digits. Two layers, 64-128-10,
 * learn from 1,437 of them by AdamW, in batches of 64; the other 360 are the test. Ends
 * with 0 if 95 % of these are read right, 1 if not or if something failed, 77 without the
 * data. */
#define _POSIX_C_SOURCE 200809L
#include <weir/autodiff.h>
#include <weir/optimizer.h>
#include <weir/report.h>
#include <weir/tensor.h>
#include <weir/weir.h>

#include <err.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum {
    PIXELS = 64,
    CLASSES = 10,
    HIDDEN = 128,
    BATCH = 64,
    MOST_DIGITS = 4096,
    TEST_DIGITS = 360,
    WARM_UP = 10, /* steps after which nothing more is to be asked of the driver */
};

static const char *const places[] = {
    "build/digits/digits.csv.gz",
    "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz",
};

typedef struct options {
    const char *device;
    const char *data; /* NULL: the places above */
    uint64_t steps;
    bool json;
} options;

static weir_stream *stream;
static weir_tensor *parameters[4]; /* weights and bias of each layer */

static void check(weir_result result)
{
    if (result != WEIR_OK) {
        errx(1, "%s", weir_last_error());
    }
}

/* ---- the data ---- */

static float images[MOST_DIGITS][PIXELS];
static int32_t labels[MOST_DIGITS];
static uint64_t digit_count;

static gzFile open_data(const options *asked)
{
    gzFile file = NULL;
    if (asked->data != NULL) {
        file = gzopen(asked->data, "rb");
        if (file == NULL) {
            err(1, "%s", asked->data);
        }
        return file;
    }
    for (size_t i = 0; file == NULL && i < sizeof places / sizeof places[0]; i++) {
        file = gzopen(places[i], "rb");
    }
    if (file == NULL) {
        warnx("no digits.csv.gz in build/digits, nor in python3-sklearn's folder; run "
              "tools/setup, or give --data");
        exit(77);
    }
    return file;
}

/* 64 pixels of 0 to 16, and the digit. */
static bool parse_line(char *line, float *image, int32_t *label)
{
    char *at = line;
    for (int i = 0; i <= PIXELS; i++) {
        char *end;
        long value = strtol(at, &end, 10);
        if (end == at || value < 0 || value > (i < PIXELS ? 16 : 9) ||
            *end != (i < PIXELS ? ',' : '\n')) {
            return false;
        }
        if (i < PIXELS) {
            image[i] = (float)value / 16.0F;
        } else {
            *label = (int32_t)value;
        }
        at = end + 1;
    }
    return true;
}

static void load_digits(const options *asked)
{
    char line[512];
    gzFile file = open_data(asked);
    while (digit_count < MOST_DIGITS && gzgets(file, line, sizeof line) != NULL) {
        if (!parse_line(line, images[digit_count], &labels[digit_count])) {
            errx(1, "line %" PRIu64 " of the data is not 64 pixels and a digit",
                 digit_count + 1);
        }
        digit_count++;
    }
    gzclose(file);
    if (digit_count <= TEST_DIGITS) {
        errx(1, "the data has %" PRIu64 " digits; more than %d are needed", digit_count,
             TEST_DIGITS);
    }
}

/* The same numbers everywhere: SplitMix64. */
static uint64_t next_random(void)
{
    static uint64_t state = 7;
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void shuffle_digits(void)
{
    for (uint64_t i = digit_count; i-- > 1;) {
        uint64_t j = next_random() % (i + 1);
        float image[PIXELS];
        int32_t label = labels[i];
        memcpy(image, images[i], sizeof image);
        memcpy(images[i], images[j], sizeof image);
        memcpy(images[j], image, sizeof image);
        labels[i] = labels[j];
        labels[j] = label;
    }
}

/* ---- the net ---- */

static weir_tensor *make_leaf(weir_shape shape, float range, uint64_t seed)
{
    weir_tensor *plain = NULL;
    weir_tensor *leaf = NULL;
    check(range > 0 ? weir_tensor_uniform(stream, shape, -range, range, seed, &plain)
                    : weir_tensor_zeros(stream, shape, &plain));
    check(weir_tensor_track(plain, &leaf));
    weir_tensor_drop(plain);
    return leaf;
}

static void make_net(void)
{
    check(weir_tag_push("weights"));
    parameters[0] = make_leaf(WEIR_SHAPE(PIXELS, HIDDEN), sqrtf(6.0F / PIXELS), 1);
    parameters[1] = make_leaf(WEIR_SHAPE(HIDDEN), 0, 0);
    parameters[2] = make_leaf(WEIR_SHAPE(HIDDEN, CLASSES), sqrtf(6.0F / HIDDEN), 2);
    parameters[3] = make_leaf(WEIR_SHAPE(CLASSES), 0, 0);
    check(weir_tag_pop());
}

/* Takes the input over. */
static weir_tensor *layer(weir_tensor *input, weir_tensor *weights, weir_tensor *bias)
{
    weir_tensor *product = NULL;
    weir_tensor *sum = NULL;
    check(weir_tensor_matmul(input, weights, &product));
    check(weir_tensor_add(product, bias, &sum));
    weir_tensor_drop(input);
    weir_tensor_drop(product);
    return sum;
}

/* The logits; takes the images over. */
static weir_tensor *forward(weir_tensor *input)
{
    weir_tensor *hidden = NULL;
    weir_tensor *sum = layer(input, parameters[0], parameters[1]);
    check(weir_tensor_relu(sum, &hidden));
    weir_tensor_drop(sum);
    return layer(hidden, parameters[2], parameters[3]);
}

/* ---- training ---- */

typedef struct training {
    weir_tensor *images; /* all that is learnt from, on the device */
    weir_tensor *labels;
    weir_optimizer *optimizer;
    uint64_t train_count;
    weir_usage warm; /* after WARM_UP steps */
    weir_usage done;
    double loss; /* of the last step that was looked at */
    double seconds;
} training;

static void make_training(training *work)
{
    work->train_count = digit_count - TEST_DIGITS;
    check(weir_tag_push("digits"));
    check(weir_tensor_from_floats(stream, WEIR_SHAPE(work->train_count, PIXELS),
                                  images[0], &work->images));
    check(weir_tensor_from_data(stream, WEIR_SHAPE(work->train_count), WEIR_DTYPE_I32,
                                labels, &work->labels));
    check(weir_tag_pop());
    check(weir_optimizer_create_adamw(
        parameters, 4, &(weir_adamw_desc){.weight_decay = 0.01}, &work->optimizer));
}

/* The numbers of a batch of digits, at random. */
static weir_tensor *pick_rows(const training *work)
{
    int32_t rows[BATCH];
    weir_tensor *picked = NULL;
    for (int i = 0; i < BATCH; i++) {
        rows[i] = (int32_t)(next_random() % work->train_count);
    }
    check(
        weir_tensor_from_data(stream, WEIR_SHAPE(BATCH), WEIR_DTYPE_I32, rows, &picked));
    return picked;
}

static weir_tensor *step(const training *work)
{
    weir_tensor *input = NULL;
    weir_tensor *targets = NULL;
    weir_tensor *loss = NULL;
    weir_tensor *rows = pick_rows(work);
    check(weir_tensor_index_select(work->images, 0, rows, &input));
    check(weir_tensor_index_select(work->labels, 0, rows, &targets));
    weir_tensor *logits = forward(input);
    check(weir_tensor_cross_entropy(logits, targets, &loss));
    check(weir_tensor_backward(loss, NULL));
    weir_tensor_drop(logits);
    weir_tensor_drop(targets);
    weir_tensor_drop(rows);
    check(weir_optimizer_step(work->optimizer, 2e-3));
    return loss;
}

static void show_progress(uint64_t number, uint64_t steps, double loss)
{
    enum { WIDTH = 40 };
    if (!isatty(STDERR_FILENO)) {
        return;
    }
    int full = (int)(number * WIDTH / steps);
    fprintf(stderr, "\r[%.*s%*s] step %" PRIu64 " of %" PRIu64 ", loss %.4f%s", full,
            "########################################", WIDTH - full, "", number, steps,
            loss, number == steps ? "\n" : "");
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static weir_usage look_at_memory(void)
{
    weir_usage usage = {.size = sizeof usage};
    check(weir_stream_sync(stream));
    check(weir_device_memory_usage(weir_stream_device(stream), &usage));
    return usage;
}

/* Looking at the loss waits for the device, so that is done now and then only. */
static void train(training *work, uint64_t steps)
{
    double begun = now();
    for (uint64_t number = 1; number <= steps; number++) {
        weir_tensor *loss = step(work);
        if (number % 50 == 0 || number == steps) {
            check(weir_tensor_item(loss, &work->loss));
            show_progress(number, steps, work->loss);
        }
        weir_tensor_drop(loss);
        if (number == (steps < WARM_UP ? steps : WARM_UP)) {
            work->warm = look_at_memory();
        }
    }
    work->done = look_at_memory();
    work->seconds = now() - begun;
}

static uint64_t driver_calls(const weir_usage *usage)
{
    return usage->page_allocs + usage->page_frees + usage->commits + usage->decommits +
           usage->moves;
}

/* Everything but the parameters, which become plain tensors. */
static void finish_training(training *work)
{
    weir_optimizer_destroy(work->optimizer);
    weir_tensor_drop(work->images);
    weir_tensor_drop(work->labels);
    for (int i = 0; i < 4; i++) {
        weir_tensor *plain = NULL;
        check(weir_tensor_detach(parameters[i], &plain));
        weir_tensor_drop(parameters[i]);
        parameters[i] = plain;
    }
}

/* ---- inference ---- */

static double measure_accuracy(void)
{
    uint64_t first = digit_count - TEST_DIGITS;
    int32_t guesses[TEST_DIGITS];
    uint64_t right = 0;
    weir_tensor *input = NULL;
    weir_tensor *places_of_most = NULL;
    check(weir_tensor_from_floats(stream, WEIR_SHAPE(TEST_DIGITS, PIXELS), images[first],
                                  &input));
    weir_tensor *logits = forward(input);
    check(weir_tensor_reduce_argmax(logits, 1, false, &places_of_most));
    check(weir_tensor_read(places_of_most, guesses, sizeof guesses));
    weir_tensor_drop(logits);
    weir_tensor_drop(places_of_most);
    for (uint64_t i = 0; i < TEST_DIGITS; i++) {
        right += guesses[i] == labels[first + i];
    }
    return (double)right / TEST_DIGITS;
}

/* ---- what is printed ---- */

static void explain(const char *when, bool json)
{
    weir_device *device = weir_stream_device(stream);
    if (json) {
        printf(", \"%s\": ", when);
        check(weir_device_explain_json(device, weir_write_file, stdout));
    } else {
        printf("\n%s:\n", when);
        check(weir_device_explain(device, weir_write_file, stdout));
    }
}

static void print_training(const training *work, const options *asked, double accuracy)
{
    char reserved[2][24];
    double per_step = work->seconds / (double)asked->steps;
    uint64_t calls = driver_calls(&work->done) - driver_calls(&work->warm);
    if (asked->json) {
        printf("{\"device\": \"%s\", \"steps\": %" PRIu64 ", \"loss\": %.6f, "
               "\"accuracy\": %.4f, \"step_us\": %.1f, \"warm_reserved_bytes\": %" PRIu64
               ", \"reserved_bytes\": %" PRIu64 ", \"driver_calls\": %" PRIu64,
               asked->device, asked->steps, work->loss, accuracy, 1e6 * per_step,
               work->warm.reserved_bytes, work->done.reserved_bytes, calls);
        return;
    }
    printf("%" PRIu64 " steps of %.0f us, loss %.4f; %.1f %% of %d digits read right\n",
           asked->steps, 1e6 * per_step, work->loss, 100 * accuracy, TEST_DIGITS);
    printf("reserved after step %d: %s, at the end: %s; %" PRIu64
           " memory calls to the driver between\n",
           WARM_UP, weir_format_bytes(work->warm.reserved_bytes, reserved[0]),
           weir_format_bytes(work->done.reserved_bytes, reserved[1]), calls);
}

static void clean_up(bool json)
{
    weir_cleanup_outcome outcome = {.size = sizeof outcome};
    explain("before_cleanup", json);
    check(weir_device_memory_cleanup(weir_stream_device(stream),
                                     &(weir_cleanup_desc){.wait = true}, &outcome));
    explain("after_cleanup", json);
    if (json) {
        printf(", \"returned_bytes\": %" PRIu64 "}\n", outcome.returned_bytes);
    } else {
        char returned[24];
        printf("\ncleanup gave %s back\n",
               weir_format_bytes(outcome.returned_bytes, returned));
    }
}

/* ---- the command line ---- */

static int show_usage(FILE *to)
{
    fprintf(to, "usage: train_digits [--device NAME] [--steps N] [--data FILE] [--json]\n"
                "  --device NAME  \"host\" if none is named\n"
                "  --steps N      400 if no number is given\n"
                "  --data FILE    digits.csv.gz of scikit-learn\n"
                "  --json         one JSON object instead of text\n");
    return to == stdout ? 0 : 2;
}

static uint64_t parse_steps(const char *text)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '1' || *text > '9' || *end != '\0') {
        errx(2, "--steps wants a number from 1 on, not \"%s\"", text);
    }
    return number;
}

static options parse(int argc, char **argv)
{
    options asked = {.device = "host", .steps = 400};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--help") == 0) {
            exit(show_usage(stdout));
        } else if (strcmp(argv[i], "--json") == 0) {
            asked.json = true;
        } else if (strcmp(argv[i], "--device") == 0 && value != NULL) {
            asked.device = argv[++i];
        } else if (strcmp(argv[i], "--data") == 0 && value != NULL) {
            asked.data = argv[++i];
        } else if (strcmp(argv[i], "--steps") == 0 && value != NULL) {
            asked.steps = parse_steps(argv[++i]);
        } else {
            exit(show_usage(stderr));
        }
    }
    return asked;
}

int main(int argc, char **argv)
{
    options asked = parse(argc, argv);
    training work = {0};
    weir_device *device;
    load_digits(&asked);
    shuffle_digits();
    check(weir_device_open(asked.device, NULL, &device));
    stream = weir_device_default_stream(device);
    make_net();
    make_training(&work);
    train(&work, asked.steps);
    finish_training(&work);
    double accuracy = measure_accuracy();
    print_training(&work, &asked, accuracy);
    clean_up(asked.json);
    for (int i = 0; i < 4; i++) {
        weir_tensor_drop(parameters[i]);
    }
    check(weir_device_close(device));
    if (accuracy < 0.95) {
        warnx("only %.1f %% of the test's digits were read right", 100 * accuracy);
    }
    return accuracy < 0.95;
}
