// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/CAPI/Handles.h"

namespace weft::capi {

weft_status report(const Error &failed, weft_error **error) noexcept {
  if (error)
    *error = new (std::nothrow) weft_error{};
  if (error && *error) {
    try {
      (*error)->message = failed.message.empty() ? std::string(statusName(failed.code)) : failed.message;
    } catch (...) { // no memory for the text: the code still says what happened
      return static_cast<weft_status>(failed.code);
    }
  }
  return static_cast<weft_status>(failed.code);
}

} // namespace weft::capi

extern "C" {

const char *weft_error_message(const weft_error *error) { return error ? error->message.c_str() : ""; }

void weft_error_free(weft_error *error) { delete error; }

// Every name is a literal, so that its end is marked.
const char *weft_status_name(int status) { return weft::statusName(static_cast<weft::StatusCode>(status)).data(); }

const char *weft_version(void) { return WEFT_VERSION; }

int weft_abi_version(void) { return WEFT_ABI_VERSION; }

} // extern "C"
