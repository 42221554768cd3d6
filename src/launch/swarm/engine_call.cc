// A program of its own, of some two kilobytes: no library, so that it runs in any image.
//
//     engine_call SOCKET "POST /containers/1f6a/kill?signal=SIGTERM" ...
//
// Asks the Docker engine at SOCKET one thing after another, and writes what it answers, with the headers, to stdout.
// Exit code 0: each was done, or is about a container that has ended.

#include <asm/unistd.h>
#include <linux/un.h>
#include <sys/socket.h>

namespace {

#if defined(__x86_64__)
// The stack begins with the number of arguments and the arguments.
asm(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call engine_call\n");

long ask_kernel(long number, long a = 0, long b = 0, long c = 0) {
  long answer = number;
  asm volatile("syscall" : "+a"(answer) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return answer;
}
#elif defined(__aarch64__)
asm(".globl _start\n_start: mov x29, xzr\n mov x0, sp\n bl engine_call\n");

long ask_kernel(long number, long a = 0, long b = 0, long c = 0) {
  register long answer asm("x0") = a;
  register long second asm("x1") = b;
  register long third asm("x2") = c;
  register long what asm("x8") = number;
  asm volatile("svc 0" : "+r"(answer) : "r"(second), "r"(third), "r"(what) : "memory");
  return answer;
}
#endif

long address_of(const void* bytes) { return reinterpret_cast<long>(bytes); }

long length_of(const char* text) {
  long length = 0;
  while (text[length] != 0) ++length;
  return length;
}

bool write_all(int to, const char* bytes, long count) {
  while (count > 0) {
    const long written = ask_kernel(__NR_write, to, address_of(bytes), count);
    if (written <= 0) return false;
    bytes += written;
    count -= written;
  }
  return true;
}

bool write_text(int to, const char* text) { return write_all(to, text, length_of(text)); }

int connect_to(const char* path) {
  sockaddr_un address;
  address.sun_family = AF_UNIX;
  const long length = length_of(path);
  if (length >= static_cast<long>(sizeof address.sun_path)) return -1;
  for (long i = 0; i <= length; ++i) address.sun_path[i] = path[i];
  const int engine = static_cast<int>(ask_kernel(__NR_socket, AF_UNIX, SOCK_STREAM));
  if (engine < 0 || ask_kernel(__NR_connect, engine, address_of(&address), sizeof address) != 0) return -1;
  return engine;
}

// "HTTP/1.0 204 No Content". 404: there is no such container; 409: it has ended.
bool is_good(const char* answer, long count) {
  if (count < 12) return false;
  const char* code = answer + 9;
  return code[0] == '2' || (code[0] == '4' && code[1] == '0' && (code[2] == '4' || code[2] == '9'));
}

// In HTTP/1.0 an answer ends with its connection.
bool ask_engine(const char* socket, const char* request) {
  const int engine = connect_to(socket);
  if (engine < 0 || !write_text(engine, request) ||
      !write_text(engine, " HTTP/1.0\r\nHost: engine\r\nContent-Length: 0\r\n\r\n")) {
    return false;
  }
  char answer[4096];
  bool good = false;
  bool first = true;
  while (true) {
    const long count = ask_kernel(__NR_read, engine, address_of(answer), sizeof answer);
    if (count <= 0) break;
    if (first) good = is_good(answer, count);
    first = false;
    write_all(1, answer, count);
  }
  ask_kernel(__NR_close, engine);
  return good;
}

}  // namespace

extern "C" [[noreturn, gnu::used]] void engine_call(const long* stack) {
  const long count = stack[0];
  const char* const* arguments = reinterpret_cast<const char* const*>(stack + 1);
  bool good = count > 2;
  for (long i = 2; i < count; ++i) good = ask_engine(arguments[1], arguments[i]) && good;
  while (true) ask_kernel(__NR_exit_group, good ? 0 : 1);
}
