// SPDX-License-Identifier: Apache-2.0

int unrelated() {
    return 0;
}
