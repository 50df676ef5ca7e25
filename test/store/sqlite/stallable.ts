/** Makes the thread that imports this module answer the first message of the channel, and then wait for ever, without CPU time. */
import { BroadcastChannel } from 'node:worker_threads'

const channel = new BroadcastChannel('stall')
channel.addEventListener('message', () => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel has one origin
  channel.postMessage('stalled')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
channel.unref()
