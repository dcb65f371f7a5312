/* libnats (nats.c) under measurement: the C peer of client_load.py, built by bench_client.py where the library and a C
 * compiler are. It stays a program of its own, because libnats driven from Python would pay for Python.
 *
 *     libnats_load CASE PORT MESSAGES        prints "ready" when its subscription stands, then {messages, cpu, seconds}
 *
 * What is measured is the CPU time of this process, all its threads, from the first message to the last. */

#include <nats/nats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define SUBJECT "bench.client"
#define SIZE 128
#define TIMEOUT 60000 /* milliseconds */

static char payload[SIZE];
static natsConnection *connection;

static void check(natsStatus status, const char *what) {
    if (status != NATS_OK) {
        fprintf(stderr, "%s: %s\n", what, natsStatus_GetText(status));
        exit(1);
    }
}

static double cpu(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static double cpu_before, wall_before;

static void start_watch(void) {
    cpu_before = cpu();
    wall_before = wall();
}

static void say_result(long messages) {
    printf("{\"messages\": %ld, \"cpu\": %.6f, \"seconds\": %.6f}\n", messages, cpu() - cpu_before, wall() - wall_before);
}

static void say_ready(void) {
    check(natsConnection_FlushTimeout(connection, TIMEOUT), "flush");
    puts("ready");
    fflush(stdout);
}

static void publish(long messages) {
    start_watch();
    for (long number = 0; number < messages; number++)
        check(natsConnection_Publish(connection, SUBJECT, payload, SIZE), "publish");
    check(natsConnection_FlushTimeout(connection, TIMEOUT), "flush");
    say_result(messages);
}

static long wanted, seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;

static void take(natsConnection *from, natsSubscription *subscription, natsMsg *message, void *closure) {
    if (seen == 0) start_watch();
    seen += natsMsg_GetDataLength(message) == SIZE;
    natsMsg_Destroy(message);
    if (seen == wanted) {
        pthread_mutex_lock(&lock);
        pthread_cond_signal(&done);
        pthread_mutex_unlock(&lock);
    }
}

static void callback(long messages) {
    natsSubscription *subscription;
    wanted = messages;
    check(natsConnection_Subscribe(&subscription, connection, SUBJECT, take, NULL), "subscribe");
    check(natsSubscription_SetPendingLimits(subscription, -1, -1), "limits");
    say_ready();
    pthread_mutex_lock(&lock);
    while (seen < wanted) pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
    say_result(messages);
    natsSubscription_Destroy(subscription);
}

static void next(long messages) {
    natsSubscription *subscription;
    natsMsg *message;
    check(natsConnection_SubscribeSync(&subscription, connection, SUBJECT), "subscribe");
    check(natsSubscription_SetPendingLimits(subscription, -1, -1), "limits");
    say_ready();
    for (long number = 0; number < messages; number++) {
        check(natsSubscription_NextMsg(&message, subscription, TIMEOUT), "next");
        if (number == 0) start_watch();
        natsMsg_Destroy(message);
    }
    say_result(messages);
    natsSubscription_Destroy(subscription);
}

static void *ask(void *count) {
    natsMsg *answer;
    for (long number = *(long *)count; number > 0; number--) {
        check(natsConnection_Request(&answer, connection, SUBJECT, payload, SIZE, TIMEOUT), "request");
        natsMsg_Destroy(answer);
    }
    return NULL;
}

/* libnats waits for an answer by blocking a thread: 64 outstanding are 64 threads. */
static void request(long messages, int workers) {
    pthread_t threads[64];
    long warm = 2, each = messages / workers;
    ask(&warm);
    start_watch();
    for (int worker = 0; worker < workers; worker++) pthread_create(&threads[worker], NULL, ask, &each);
    for (int worker = 0; worker < workers; worker++) pthread_join(threads[worker], NULL);
    say_result(each * workers);
}

int main(int argc, char **argv) {
    char url[64];
    if (argc != 4) {
        fputs("usage: libnats_load publish|callback|next|request1|request64 PORT MESSAGES\n", stderr);
        return 2;
    }
    long messages = atol(argv[3]);
    memset(payload, 'x', SIZE);
    snprintf(url, sizeof url, "nats://127.0.0.1:%s", argv[2]);
    check(natsConnection_ConnectTo(&connection, url), "connect");
    if (strcmp(argv[1], "publish") == 0) publish(messages);
    else if (strcmp(argv[1], "callback") == 0) callback(messages);
    else if (strcmp(argv[1], "next") == 0) next(messages);
    else if (strcmp(argv[1], "request1") == 0) request(messages, 1);
    else if (strcmp(argv[1], "request64") == 0) request(messages, 64);
    else return 2;
    natsConnection_Destroy(connection);
    return 0;
}
