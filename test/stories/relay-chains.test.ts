/** Mail through two relays: the second receives what the first sends, no message becomes two, and no mail loops without end. */
import { describe, expect, test } from 'vitest'
import { DAY, HOUR } from '../../src/system/clock.ts'
import { RelayNetwork } from '../support/relay-network.ts'
import { segmentations, singleBytes } from '../support/segments.ts'
import { smugglingOf, SMUGGLING_MARKS } from '../support/smuggling.ts'

describe('SMTP smuggling through a relay into the next one', () => {
  async function chain() {
    const network = new RelayNetwork()
    const front = await network.open('front.example', '192.0.2.1', { relayhost: '[192.0.2.2]:25' })
    const back = await network.open('back.example', '192.0.2.2', { transport_maps: { '*': 'discard:' } })
    /** Number of messages from these packets that the second relay receives. */
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

  test.each(SMUGGLING_MARKS)('$before . $after: at most one message', async ({ mark }) => {
    const { arrivals, front, back } = await chain()
    const content = smugglingOf(mark)
    const count = await arrivals([content])
    expect(count).toBeLessThanOrEqual(1)
    expect(await arrivals(singleBytes(content))).toBe(count)
    expect(back.heard('accepted')).toHaveLength(front.heard('accepted').length)
    expect(back.heard('accepted').every(({ message }) => message.sender === 'app@us.example')).toBe(true)
    // The second relay received no commands except those of the first.
    expect(back.heard('disconnected').every(({ commands }) => commands['unknown'] === undefined)).toBe(true)
  })

  test.each(['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r\n'])('%j, split at each position', async (mark) => {
    const { arrivals, back } = await chain()
    for (const { packets } of segmentations(smugglingOf(mark))) expect(await arrivals(packets)).toBe(1)
    expect(back.heard('accepted').every(({ message }) => message.sender === 'app@us.example')).toBe(true)
  })
})

describe('two relays that route to each other', () => {
  test('stop at hopcount_limit: message and notice make at most one more hop', async () => {
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
    expect([one, other].flatMap((relay) => relay.heard('notice-sent'))).toHaveLength(1)
    expect([one, other].flatMap((relay) => relay.heard('notice-dropped'))).toHaveLength(1)
    // In the end both are empty: what was accepted is gone, and the notice where it was made.
    expect([one, other].flatMap((relay) => relay.heard('removed'))).toHaveLength(accepted.length + 1)
  })
})
