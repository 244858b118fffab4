"""Which <headers> are standard C++20, and which belong to the system."""

STD = frozenset("""
algorithm any array atomic barrier bit bitset charconv chrono compare complex concepts
condition_variable coroutine deque exception execution filesystem forward_list fstream functional
future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map
memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
scoped_allocator semaphore set shared_mutex span sstream stack stdexcept stop_token streambuf
string string_view syncstream system_error thread tuple type_traits typeindex typeinfo
unordered_map unordered_set utility valarray variant vector version
cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef
cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype
""".split())

SOCKETS = frozenset("""
arpa/inet.h linux/filter.h linux/tcp.h netdb.h netinet/in.h netinet/tcp.h poll.h sys/epoll.h
sys/eventfd.h sys/select.h sys/socket.h sys/timerfd.h sys/un.h
""".split())

POSIX = frozenset("""
dirent.h errno.h fcntl.h linux/limits.h malloc.h pthread.h pwd.h sched.h signal.h stdlib.h string.h
sys/auxv.h sys/file.h sys/ioctl.h sys/mman.h sys/prctl.h sys/random.h sys/resource.h sys/signalfd.h
sys/stat.h sys/statvfs.h sys/syscall.h sys/sysinfo.h sys/time.h sys/types.h sys/uio.h
sys/utsname.h sys/vfs.h sys/wait.h syslog.h termios.h time.h unistd.h
""".split())
