/** Nodes of a shared queue as the API lists them, and a view of the page for an administrator. */
import type { View } from '../../src/page/markup/view.ts'
import type { NodeJson } from '../../src/resources/node-json.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const clock = new VirtualClock()
export const NODE_VIEW: View = {
  root: '',
  here: 'nodes',
  now: clock.wall.now(),
  clock,
  relay: 'relay.example',
  version: '0',
  files: 'static/0',
  health: null,
  classes: [],
  requester: { name: 'ann', mayOperate: true, mayAdminister: true, mayReadContent: false },
}

export const node = (name: string, more: Partial<NodeJson> = {}): NodeJson => ({
  node: 1,
  name,
  state: 'active',
  answers: false,
  shards: 128,
  leased: 0,
  deliveries: null,
  beat_age: 1,
  lost: null,
  settings_differ: false,
  differing_settings: [],
  version: '0.9.0',
  joined: 0,
  ...more,
})
