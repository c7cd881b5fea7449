// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A list on the device's heap.
struct Node {
  int value;
  Node *next;
};
extern "C" __global__ void heap_list(const int *x, int *y, int length) {
  Node *head = nullptr;
  for (int i = 0; i < length; ++i) {
    Node *node = (Node *)malloc(sizeof(Node));
    node->value = x[threadIdx.x * length + i];
    node->next = head;
    head = node;
  }
  int sum = 0, weight = 1;
  while (head) {
    sum += head->value * weight++;
    Node *next = head->next;
    free(head);
    head = next;
  }
  y[threadIdx.x] = sum;
}
