/*
 * Loaded into isolationtester (LD_PRELOAD) when it talks to Weir. It asks the database whether the session of a PQbackendPID() waits for
 * a lock; Weir's number names a client and no process. So each session gets a number that follows from its application_name, which moves
 * with it to whichever server; number_of() in the program `isolation` is the same sum. A notification that has the number which libpq was
 * told at the login has the session's here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

struct notification { char *channel; int number; };

const char *PQparameterStatus(const void *conn, const char *name);

int PQbackendPID(const void *conn)
{
    const char *name = PQparameterStatus(conn, "application_name");
    int sum = 0;
    for (int i = 1; name != NULL && *name != '\0'; i++, name++)
        sum += (unsigned char) *name * i * i;
    return sum;
}

struct notification *PQnotifies(void *conn)
{
    struct notification *(*notifies)(void *) = dlsym(RTLD_NEXT, "PQnotifies");
    int (*told)(const void *) = dlsym(RTLD_NEXT, "PQbackendPID");
    struct notification *one = notifies(conn);
    if (one != NULL && one->number == told(conn))
        one->number = PQbackendPID(conn);
    return one;
}
