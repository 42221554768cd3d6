#pragma once

namespace pscloud {

// A queue may start a process with no environment at all. Sets PATH, HOME and USER where they are missing, as a login
// would. Before there is a second thread.
void add_login_environment();

}  // namespace pscloud
