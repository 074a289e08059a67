/* SPDX-License-Identifier: Apache-2.0 */
/* One of the programs that run inside and outside: test/languages/test_programs.py. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

static atomic_int total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int waiting;
static sem_t gate;
static _Thread_local int mine;

static void *work(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		atomic_fetch_add(&total, 1);
		mine++;
	}
	pthread_mutex_lock(&lock);
	waiting++;
	pthread_cond_signal(&ready);
	pthread_mutex_unlock(&lock);
	sem_wait(&gate);
	return (void *)((long)arg * mine);
}

int main(void)
{
	pthread_t t[8];
	long sum = 0;

	sem_init(&gate, 0, 0);
	for (long i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	pthread_mutex_lock(&lock);
	while (waiting < 8)
		pthread_cond_wait(&ready, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 8; i++)
		sem_post(&gate);
	for (int i = 0; i < 8; i++) {
		void *r;
		pthread_join(t[i], &r);
		sum += (long)r;
	}
	printf("%d %ld %d\n", total, sum, mine);
	return 0;
}
