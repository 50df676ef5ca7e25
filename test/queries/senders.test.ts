/** Senders of all mail of a filter, also of mail behind the first pages. */
import { expect, test } from 'vitest'
import { Senders } from '../../src/queries/counts/senders.ts'
import { ApiWorld } from '../support/api-world.ts'
import { HOUR } from '../../src/system/clock.ts'

const LATER = { notBefore: HOUR * 24 * 365 * 100, scheduled: true, holdRequest: 'for;3600' }

test('the senders are those of all messages, the largest first, and a limited client sees its own', async () => {
  const world = await ApiWorld.open('sqlite')
  try {
    for (let n = 0; n < 560; n++) await world.queue.accept([`user${n}@a.example.org`], { sender: `app${n % 280}@us.example` })
    for (let n = 0; n < 40; n++) await world.queue.accept([`late${n}@b.example`], { sender: 'spam@us.example' })
    const { view } = world.api.api
    const senders = new Senders(view)
    const signal = new AbortController().signal
    const all = await senders.of({}, 2, { visible: null, signal })
    expect(all).toMatchObject({ messages: 600, senders_counted: 281 })
    expect(all.senders).toEqual([
      { sender: 'spam@us.example', messages: 40 },
      { sender: 'app0@us.example', messages: 2 },
    ])
    expect(await senders.of({}, 1, { visible: '*.example.org', signal })).toMatchObject({ messages: 560, senders_counted: 280 })
    // Mail on hold does not wait, mail for later does.
    await world.queue.operate('hold', 'all')
    for (let n = 0; n < 2; n++) await world.queue.accept([`then${n}@b.example`], { sender: 'news@us.example', times: LATER })
    const { json } = await world.api.get('/senders?destination=b.example&waits=true&limit=1')
    expect(json).toMatchObject({ senders: [{ sender: 'news@us.example', messages: 2 }], senders_counted: 1, messages: 2 })
  } finally {
    await world.close()
  }
})
