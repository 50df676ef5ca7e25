/**
 * Which way is down. The import lines of the sources are read, and every arrow must point down or stay in its room;
 * the words and ports that lower rooms speak with stand below them, whatever folder they are in.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'

const FLOORS: readonly (readonly string[])[] = [
  // A turn of the event loop is as basic as a word; the thread of the store gathers its calls by it. So is a thread.
  ['mail/', 'system/turn.ts', 'system/asked-thread.ts'],
  ['backoff/'],
  ['queue/message.ts', 'queue/store.ts', 'queue/reader.ts', 'queue/queue-errors.ts', 'delivery/net.ts', 'delivery/delivery-agent.ts'],
  [
    'config/options.ts',
    'config/values.ts',
    'config/destination-settings.ts',
    'config/problem.ts',
    'config/endpoints.ts',
    'config/networks.ts',
  ],
  ['telemetry/events.ts'],
  ['delivery/route.ts', 'delivery/next-hop.ts', 'bounce/notice.ts'],
  ['config/'],
  ['queue/'],
  ['delivery/', 'bounce/', 'telemetry/'],
  ['smtpd/'],
  ['system/'],
  ['daemon/'],
  ['testkit/', 'index.ts'],
  ['simulator/'],
  ['cli/'],
]

const root = join(import.meta.dirname, '../src')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))

/** The floor of a file: the one that names it, else the one that names its folder. */
function floorOf(file: string): number {
  const named = FLOORS.findIndex((floor) => floor.includes(file))
  return named >= 0 ? named : FLOORS.findIndex((floor) => floor.some((room) => room.endsWith('/') && file.startsWith(room)))
}

const importsOf = (file: string): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/^(?:import|export|\}) .*?from '(\.[^']+)'/gm)].map((match) =>
    normalize(join(dirname(file), match[1] ?? '')),
  )

test('every file has its floor', () => {
  expect(files.filter((file) => floorOf(file) < 0)).toEqual([])
})

test('imports point down or stay in their room', () => {
  const rising = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => floorOf(target) > floorOf(file))
      .map((target) => `${file} -> ${target}`),
  )
  expect(rising).toEqual([])
})
