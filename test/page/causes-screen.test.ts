/** Causes and senders of waiting mail on the page, apart from those of mail on hold. */
import { expect, test } from 'vitest'
import { causesScreen, type Places } from '../../src/page/screens/causes-screen.ts'
import { destinationScreen } from '../../src/page/screens/destination-screen.ts'
import { Senders } from '../../src/queries/counts/senders.ts'
import type { View } from '../../src/page/markup/view.ts'
import { destinationDetails } from '../../src/queries/destinations.ts'
import { Causes } from '../../src/queries/counts/causes.ts'
import { SECOND } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

const NONE: Places = { providerOf: () => null, isSuspended: () => false }

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

    const facts = { destination: await destinationDetails(view, name, null), causes: await causes.of(name, client), senders, differing: [] }
    const all = async () => (await causes.sumsWithin(SECOND, client, NONE.isSuspended)) ?? null
    for (const { main } of [destinationScreen(shown, facts), causesScreen(shown, await all(), NONE)]) {
      const [waits = '', onHold = ''] = main.markup.split('<h2>On hold</h2>')
      expect(waits).toContain('<strong>450 4.2.1</strong> busy, try later')
      expect(waits).not.toContain('queue=hold')
      expect(onHold).toMatch(/operation=delete&amp;destination=c\.example&amp;queue=hold&amp;reply=/)
      expect(onHold).toContain('operation=release&amp;destination')
      expect(onHold).not.toMatch(/operation=hold&amp;destination=c\.example&amp;queue=hold/)
    }
    const providerOf = (one: string) => (one === 'b.example' ? 'big' : null)
    const sums = causesScreen(shown, await all(), { ...NONE, providerOf }).main.markup
    expect(sums).toMatch(/2 destinations<span[^>]*>: .*b\.example.*c\.example/)
    expect(sums).toContain('of <a href="./providers/big">big</a>')
  } finally {
    await world.close()
  }
})

test('mail that a suspension holds up has it beside the last reply, and mail on hold waits for its release alone', async () => {
  const world = await ApiWorld.open('memory')
  try {
    for (const name of ['a.example', 'b.example', 'c.example']) await world.queue.accept([`ann@${name}`])
    await world.queue.advance(1_000)
    const words = async () => (await new PageScreens(world).text('causes')).replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
    expect(await words()).toContain('3 destinations : a.example , b.example , c.example')
    for (const name of ['a.example', 'b.example']) await world.api.post(`/destinations/${name}/suspend`, {}, { as: 'admin' })
    expect(await words()).toContain('3 destinations, 2 suspended : a.example suspended , b.example suspended , c.example')
    await world.queue.operate('hold', 'all')
    await world.queue.advance(40_000)
    expect(await words()).toMatch(/On hold .*3 destinations : a\.example , b\.example , c\.example/)
    expect(await words()).not.toContain('suspended :')
  } finally {
    await world.close()
  }
})
