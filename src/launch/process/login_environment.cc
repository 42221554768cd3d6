#include "launch/process/login_environment.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace pscloud {

void add_login_environment() {
  ::setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 0);
  const passwd* const user = ::getpwuid(::getuid());
  if (user == nullptr) return;
  ::setenv("HOME", user->pw_dir, 0);
  ::setenv("USER", user->pw_name, 0);
}

}  // namespace pscloud
