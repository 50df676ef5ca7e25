/** What one relay makes of mail is what the next one gets: no message becomes two, and none goes round for ever. */
import { describe, expect, test } from 'vitest'
import { DAY, HOUR } from '../../src/mail/clock.ts'
import { RelayNetwork } from '../support/relay-network.ts'
import { segmentations, singleBytes } from '../support/segments.ts'
import { smugglingOf, SMUGGLING_MARKS } from '../support/smuggling.ts'

describe('SMTP smuggling through a relay into the next one', () => {
  async function chain() {
    const network = new RelayNetwork()
    const front = await network.open('front.example', '192.0.2.1', { relayhost: '[192.0.2.2]:25' })
    const back = await network.open('back.example', '192.0.2.2', { transport_maps: { '*': 'discard:' } })
    /** How many messages of these packets arrive at the second relay. */
    const arrivals = async (packets: readonly Buffer[]): Promise<number> => {
      const before = back.heard('accepted').length
      const client = await network.connect(front)
      await client.upToData()
      await client.send(...packets)
      await client.say('QUIT')
      await network.advance(HOUR)
      return back.heard('accepted').length - before
    }
    return { arrivals, front, back }
  }

  test.each(SMUGGLING_MARKS)('$before . $after: never more than one message', async ({ mark }) => {
    const { arrivals, front, back } = await chain()
    const content = smugglingOf(mark)
    const count = await arrivals([content])
    expect(count).toBeLessThanOrEqual(1)
    expect(await arrivals(singleBytes(content))).toBe(count)
    expect(back.heard('accepted')).toHaveLength(front.heard('accepted').length)
    expect(back.heard('accepted').every(({ message }) => message.sender === 'app@us.example')).toBe(true)
    // Nor are there commands that the second relay was asked to obey, beyond those of the first.
    expect(back.heard('disconnected').every(({ commands }) => commands['unknown'] === undefined)).toBe(true)
  })

  test.each(['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r\n'])('%j, cut at every place', async (mark) => {
    const { arrivals, back } = await chain()
    for (const { packets } of segmentations(smugglingOf(mark))) expect(await arrivals(packets)).toBe(1)
    expect(back.heard('accepted').every(({ message }) => message.sender === 'app@us.example')).toBe(true)
  })
})

describe('S53: two relays that point at each other', () => {
  test('stop at the hop limit: the message was there at most once more often than that, and so was the notice', async () => {
    const network = new RelayNetwork()
    const [one, other] = await Promise.all([
      network.open('one.example', '192.0.2.1', { relayhost: '[192.0.2.2]:25', hopcount_limit: 50 }),
      network.open('other.example', '192.0.2.2', { relayhost: '[192.0.2.1]:25', hopcount_limit: 50 }),
    ])
    const client = await network.connect(one)
    await client.upToData()
    await client.say('Subject: round and round', '', 'hello', '.', 'QUIT')
    await network.advance(3 * DAY)
    const accepted = [one, other].flatMap((relay) => relay.heard('accepted').map(({ message }) => message.sender))
    const [messages, notices] = [accepted.filter((sender) => sender !== '').length, accepted.filter((sender) => sender === '').length]
    expect(messages).toBeGreaterThan(40)
    expect(messages).toBeLessThanOrEqual(51)
    expect(notices).toBeGreaterThan(40)
    expect(notices).toBeLessThanOrEqual(51)
    expect([one, other].flatMap((relay) => relay.heard('noticed'))).toHaveLength(1)
    expect([one, other].flatMap((relay) => relay.heard('notice-dropped'))).toHaveLength(1)
    // In the end both are empty: what was accepted is gone, and the notice where it was made.
    expect([one, other].flatMap((relay) => relay.heard('removed'))).toHaveLength(accepted.length + 1)
  })
})
