#pragma once

// The only door to Asio, for .cc files of this room and tcp_connection.h. What Asio makes of itself depends on macros
// of the standard library, which it does not include first: two files that differ there would mix malloc and delete.
// clang-format off
#include <version>
#include <cstddef>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
// clang-format on
