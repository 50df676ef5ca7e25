/** View of a request for the page, for tests of single screens. */
import type { View } from '../../src/page/markup/view.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

/** Of an operator who may do all but read contents, at the root of the page. */
export function sampleView(here: string, clock = new VirtualClock()): View {
  return {
    root: '',
    here,
    now: clock.wall.now(),
    clock,
    relay: 'relay.example',
    version: '0',
    files: 'static/0',
    health: null,
    classes: [],
    requester: { name: 'ann', mayOperate: true, mayAdminister: true, mayReadContent: false },
  }
}
