// Binds the port that its launcher has given it within microseconds of its start, without SO_REUSEADDR: a static
// program of few pages, far faster than a script. Ends with 0, or with the errno of bind.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

int main() {
  const char* listen = std::getenv("PSCLOUD_LISTEN");
  const char* port = listen == nullptr ? nullptr : std::strrchr(listen, ':');
  if (port == nullptr) return 255;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port + 1)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}
