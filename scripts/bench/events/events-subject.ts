/** The cost of events for programs: mail with a subscriber that hangs and with one that answers, beside mail without subscribers. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Figure } from '../figures/figure.ts'
import { takeMailTurns } from '../figures/mail-turns.ts'
import type { Part, Setting, Subject } from '../figures/subject.ts'

const NAMES = ['unsubscribed', 'hanging', 'answering'] as const
type Name = (typeof NAMES)[number]

/** CPU time per message with a subscriber that hangs, beside none. */
const MOST_CPU = 1.08
/** Messages per second with it, beside none. */
const LEAST_RATE = 0.95
/** Increase of the greeting's p99 that a subscriber may cause, in ms. */
const MOST_DELAY = 5

/** A target on loopback in this process, whose CPU time counts for no daemon. */
async function startTarget(setting: Setting, name: Name): Promise<number> {
  const server: Server = createServer((request, response) => {
    request.resume()
    if (name === 'answering') request.on('end', () => response.writeHead(204).end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  setting.undo.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A configuration file with a subscription to all events; empty for none. */
async function configuration(setting: Setting, name: Name): Promise<string> {
  if (name === 'unsubscribed') return ''
  return `[events.bench]\nto = "http://127.0.0.1:${await startTarget(setting, name)}/"\nallow_private = true\n`
}

const WEBHOOKS: Part = {
  name: 'webhooks',
  about: '2 kB over kept connections: a webhook of all types whose receiver hangs, and one whose receiver answers, beside none',
  measure: async (setting) => {
    const turns = await takeMailTurns(setting, NAMES, (name) => configuration(setting, name))
    const without = turns.unsubscribed
    const ratio = (name: Name, of: 'cpu' | 'rate'): number[] =>
      turns[name].map((turn, round) => turn[of] / (without[round]?.[of] ?? Number.NaN))
    const later = (name: Name): number[] =>
      turns[name].map(({ greetingP99 }, round) => greetingP99 - (without[round]?.greetingP99 ?? Number.NaN))
    return [
      ...NAMES.map((name): Figure => ({
        name: `CPU per message, ${name}`,
        unit: 'ms',
        target: null,
        values: turns[name].map(({ cpu }) => cpu),
      })),
      { name: 'CPU per message, hanging ÷ unsubscribed', unit: '', target: { most: MOST_CPU }, values: ratio('hanging', 'cpu') },
      { name: 'CPU per message, answering ÷ unsubscribed', unit: '', target: null, values: ratio('answering', 'cpu') },
      { name: 'messages per second, hanging ÷ unsubscribed', unit: '', target: { least: LEAST_RATE }, values: ratio('hanging', 'rate') },
      { name: 'greeting p99, hanging − unsubscribed', unit: 'ms', target: { most: MOST_DELAY }, values: later('hanging') },
    ]
  },
}

export const EVENTS: Subject = {
  name: 'events',
  about: `Measures events for programs: what a webhook costs per message while its
receiver hangs and while it answers, and how long greetings wait meanwhile.`,
  missing: () => null,
  parts: [WEBHOOKS],
}
