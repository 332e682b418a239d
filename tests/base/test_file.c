/* tests/base/test_file.c: what becomes of the thing that a file is written to, and names that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "runtime/base/destination.h"
#include "runtime/base/file.h"

static char folder[] = "/tmp/tilth-file-XXXXXX";

static int enter_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    DIR *dir = opendir(".");
    for (struct dirent *d; (d = readdir(dir)) != NULL;)
        if (unlink(d->d_name) != 0)
            rmdir(d->d_name);
    closedir(dir);
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static int count_names(void)
{
    int count = 0;
    DIR *dir = opendir(".");
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void expect_text(const char *path, const char *text)
{
    tl_text read = { 0 };
    assert_int_equal(tl_file_read(path, &read, NULL), TL_OK);
    assert_string_equal(tl_text_get(&read), text);
    tl_text_free(&read);
}

static void write_text(const char *path, const char *text)
{
    tl_diag diag = { 0 };
    if (tl_file_write(path, text, strlen(text), &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static bool is_link(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

static void the_target_of_a_link_is_replaced(void **state)
{
    (void)state;
    struct stat before, after;
    write_text("target", "old");
    assert_int_equal(chmod("target", 0640), 0);
    assert_int_equal(stat("target", &before), 0);
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(symlink("./link", "link2"), 0);
    int names = count_names();
    write_text("link2", "new");
    assert_int_equal(count_names(), names);
    assert_true(is_link("link") && is_link("link2"));
    expect_text("target", "new");
    assert_int_equal(stat("target", &after), 0);
    assert_int_not_equal(after.st_ino, before.st_ino); /* in one step */
    assert_int_equal(after.st_mode & 0777, 0640);

    assert_int_equal(symlink("later", "early"), 0); /* to where nothing is yet */
    write_text("early", "first");
    assert_true(is_link("early") && !is_link("later"));
    expect_text("later", "first");
    assert_int_equal(symlink("round", "round"), 0);
    assert_int_equal(tl_file_write("round", "x", 1, NULL), TL_BAD_ARGUMENT);

    tl_file *file; /* for folders of our own a link is as good as a file */
    assert_int_equal(tl_file_create_private("link", &file, NULL), TL_OK);
    assert_int_equal(tl_file_append(file, "mine", 4, NULL), TL_OK);
    assert_int_equal(tl_file_commit(file, NULL), TL_OK);
    assert_false(is_link("link"));
    expect_text("target", "new");
}

static void a_device_is_written_to(void **state)
{
    (void)state;
    struct stat info;
    tl_diag diag = { 0 };
    /* a null device of our own */
    if (mknod("null", S_IFCHR | 0666, makedev(1, 3)) != 0)
        skip();
    int fd = open("null", O_WRONLY);
    if (fd < 0)
        skip(); /* a file system that has no devices */
    close(fd);
    write_text("null", "nothing");
    assert_int_equal(stat("null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_int_equal(symlink("null", "to_null"), 0);
    write_text("to_null", "nothing");
    assert_true(is_link("to_null") && stat("null", &info) == 0 && S_ISCHR(info.st_mode));
    assert_true(tl_file_is_stream("to_null"));
    assert_false(tl_file_is_stream("target"));

    assert_int_equal(mknod("full", S_IFCHR | 0666, makedev(1, 7)), 0);
    assert_int_equal(tl_file_write("full", "x", 1, &diag), TL_IO);
    assert_non_null(strstr(diag.text, "full: cannot write: "));
    assert_true(stat("full", &info) == 0 && S_ISCHR(info.st_mode));
}

static void a_pipe_is_written_to(void **state)
{
    (void)state;
    struct stat info;
    char got[16] = { 0 };
    tl_file *file;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(tl_file_create("pipe", &file, NULL), TL_OK); /* asking leaves no trace */
    tl_file_abandon(file);
    write_text("pipe", "through");
    assert_int_equal(read(reader, got, sizeof got), 7);
    assert_string_equal(got, "through");
    close(reader);
    assert_true(stat("pipe", &info) == 0 && S_ISFIFO(info.st_mode));
}

/* /dev/fd/N and /dev/stdout continue what is open there; the latter as a link of our own. */
static void open_files_go_on(void **state)
{
    (void)state;
    char name[32], got[16] = { 0 };
    int ends[2], fd = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && pipe(ends) == 0);
    assert_int_equal(write(fd, "one ", 4), 4);
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    write_text(name, "two ");
    assert_int_equal(write(fd, "three", 5), 5);
    expect_text("log", "one two three");
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[1]);
    write_text(name, "piped");
    assert_int_equal(read(ends[0], got, sizeof got), 5);
    assert_string_equal(got, "piped");
    close(ends[0]);
    close(ends[1]);

    assert_int_equal(symlink("/proc/self/fd/1", "stdout"), 0);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    printf(" four"); /* still in the program's buffer */
    tl_status status = tl_file_write("stdout", " five", 5, NULL);
    assert_int_equal(dup2(kept, STDOUT_FILENO), STDOUT_FILENO);
    close(kept);
    close(fd);
    assert_int_equal(status, TL_OK);
    expect_text("log", "one two three four five");
}

static void private_is_private(void **state)
{
    (void)state;
    static const mode_t masks[] = { 0, 022, 0777 };
    struct stat info;
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        mode_t kept = umask(masks[i]);
        tl_file *file;
        assert_int_equal(tl_file_create_private("secret", &file, NULL), TL_OK);
        assert_int_equal(tl_file_commit(file, NULL), TL_OK);
        tl_status status = tl_folder_make("closed", NULL);
        umask(kept);
        assert_int_equal(status, TL_OK);
        assert_true(stat("secret", &info) == 0 && (info.st_mode & 0777) == 0600);
        assert_true(stat("closed", &info) == 0 && (info.st_mode & 0777) == 0700);
        assert_int_equal(rmdir("closed"), 0);
    }
}

static void no_name_is_refused(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    tl_mapping mapping;
    tl_file *file;
    int names = count_names();
    assert_int_equal(tl_folder_make("", &diag), TL_BAD_ARGUMENT);
    assert_string_equal(diag.text, "the name of a folder is empty");
    assert_int_equal(tl_file_create("", &file, &diag), TL_BAD_ARGUMENT);
    assert_string_equal(diag.text, "the name of a file is empty");
    assert_int_equal(tl_file_map("", &mapping, &diag), TL_BAD_ARGUMENT);
    assert_int_equal(tl_file_write(".", "x", 1, &diag), TL_BAD_ARGUMENT);
    assert_string_equal(diag.text, ".: this is a folder, not a file");
    char *longer = calloc(1, 5000);
    memset(longer, 'a', 4999);
    assert_int_equal(tl_file_create(longer, &file, &diag), TL_BAD_ARGUMENT);
    free(longer);
    assert_int_equal(count_names(), names);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_target_of_a_link_is_replaced),
        cmocka_unit_test(a_device_is_written_to),
        cmocka_unit_test(a_pipe_is_written_to),
        cmocka_unit_test(open_files_go_on),
        cmocka_unit_test(private_is_private),
        cmocka_unit_test(no_name_is_refused),
    };
    return cmocka_run_group_tests_name("file", tests, enter_folder, remove_folder);
}
