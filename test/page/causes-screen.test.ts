/** Causes and senders of waiting mail on the page, apart from those of mail on hold. */
import { expect, test } from 'vitest'
import { causesScreen } from '../../src/page/screens/causes-screen.ts'
import { destinationScreen } from '../../src/page/screens/destination-screen.ts'
import { Senders } from '../../src/queries/counts/senders.ts'
import type { View } from '../../src/page/markup/view.ts'
import { destinationDetails } from '../../src/queries/destinations.ts'
import { Causes } from '../../src/queries/counts/causes.ts'
import { ApiWorld } from '../support/api-world.ts'

test('mail on hold is neither among the causes of waiting mail nor among its senders', async () => {
  const world = await ApiWorld.open('memory')
  try {
    const name = 'c.example'
    const held = await world.queue.accept([`ann@${name}`], { sender: 'spam@us.example' })
    await world.queue.accept([`bob@${name}`, 'bob@b.example'])
    await world.queue.advance(1_000)
    const selection = { kind: 'ids', ids: [held] }
    const done = await world.api.post('/operations', { operation: 'hold', selection }, { as: 'operator' })
    expect(done.json).toMatchObject({ changed: 1 })

    const { view } = world.api.api
    const [causes, client] = [new Causes(view), { visible: null, signal: new AbortController().signal }]
    const requester = { name: 'ann', mayOperate: true, mayAdminister: true, mayReadContent: false }
    const shown: View = {
      root: './',
      here: '',
      now: view.clock.wall.now(),
      clock: view.clock,
      relay: 'r',
      version: '0',
      files: 's',
      classes: [],
      health: null,
      requester,
    }
    const senders = await new Senders(view).of({ destination: name, waits: true }, 5, client)
    expect(senders).toMatchObject({ senders_counted: 1, messages: 1, senders: [{ sender: 'app@us.example', messages: 1 }] })

    const facts = { destination: await destinationDetails(view, name, null), causes: await causes.of(name, client), senders }
    for (const { main } of [destinationScreen(shown, facts), causesScreen(shown, await causes.sums(client), () => null)]) {
      const [waits = '', onHold = ''] = main.markup.split('<h2>On hold</h2>')
      expect(waits).toContain('<strong>450 4.2.1</strong> busy, try later')
      expect(waits).not.toContain('queue=hold')
      expect(onHold).toMatch(/operation=delete&amp;destination=c\.example&amp;queue=hold&amp;reply=/)
      expect(onHold).toContain('operation=release&amp;destination')
      expect(onHold).not.toMatch(/operation=hold&amp;destination=c\.example&amp;queue=hold/)
    }
    const sums = causesScreen(shown, await causes.sums(client), (one) => (one === 'b.example' ? 'big' : null)).main.markup
    expect(sums).toMatch(/2 destinations<span[^>]*>: .*b\.example.*c\.example/)
    expect(sums).toContain('of <a href="./providers/big">big</a>')
  } finally {
    await world.close()
  }
})
