/** Links from the senders of some mail to operations on it. */
import { expect, test } from 'vitest'
import { senderList, sendersSection } from '../../src/page/screens/senders-list.ts'
import type { View } from '../../src/page/markup/view.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const VIEW: View = {
  root: '../',
  here: '',
  now: 0,
  clock: new VirtualClock(),
  relay: 'relay.example',
  version: '0',
  files: 'static/0',
  health: null,
  classes: [],
  requester: { name: 'ann', mayOperate: true, mayAdminister: true, mayReadContent: false },
}

const sendersOf = (...senders: readonly string[]) => ({
  senders: senders.map((sender) => ({ sender, messages: 1 })),
  senders_counted: senders.length,
  messages: senders.length,
  as_of: 0,
})

/** Senders that the links of some markup select. */
const selected = (markup: string): readonly (string | null)[] =>
  [...markup.matchAll(/href="([^"]*)"/g)].map(([, url = '']) =>
    new URL(url.replaceAll('&amp;', '&'), 'http://relay.example/a/b').searchParams.get('sender'),
  )

test('a sender whose address contains * has no link, since a filter would select other senders too', () => {
  const senders = sendersOf('app@us.example', '*@us.example', 'a*b@us.example', 'MAILER-DAEMON')
  const section = sendersSection(VIEW, senders, 'far.example')?.markup ?? ''
  const list = senderList(VIEW, senders, { queue: 'deferred' })?.markup ?? ''
  expect(new Set(selected(section))).toEqual(new Set(['app@us.example', '<>']))
  expect(selected(list)).toEqual(['app@us.example', '<>'])
  for (const markup of [section, list]) expect(markup).toContain('a*b@us.example')
  expect(section.match(/no filter selects only/g)).toHaveLength(2)
})
