/** deferd and a private Postfix before the same sink, measured in turns. Without Postfix, or without root, deferd is measured alone. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, greeted, type Child } from '../child.ts'
import type { Loaded } from '../load.ts'
import { postfixIsMissing, startPostfix } from '../postfix.ts'
import { rotated } from '../statistics.ts'
import { startDaemon, type Settings } from './bench-daemon.ts'
import type { Setting } from './subject.ts'

const NAMES = ['deferd', 'postfix'] as const
type Name = (typeof NAMES)[number]

export type Relays = Readonly<Partial<Record<Name, Loaded & { readonly child: Child }>>>
/** The turns of each relay, one for each round; none of a relay that is missing. */
export type Turns<T> = Readonly<Record<Name, readonly T[]>>

export interface Pair {
  /** Name of the instances. */
  readonly name: string
  readonly sinkPort: number
  readonly deferd?: Settings
  readonly postfix?: Settings
  /** Variables of deferd; Postfix has them by its settings. */
  readonly env?: Readonly<Record<string, string>>
}

/** The folder of the instance of Postfix. */
export const postfixFolder = ({ folder }: Pick<Setting, 'folder'>, name: string): string => join(folder, `postfix-${name}`)

/** Starts the relays, which greet when this resolves and end with the part at the latest. */
export async function startBesidePostfix(setting: Setting, { name, sinkPort, deferd, postfix, env = {} }: Pair): Promise<Relays> {
  const daemon = await startDaemon(setting, `deferd-${name}`, { relayhost: `[127.0.0.1]:${sinkPort}`, ...deferd }, { env })
  if ((await postfixIsMissing()) !== null) return { deferd: daemon }
  const folder = postfixFolder(setting, name)
  mkdirSync(folder)
  const listen = await freePort()
  const child = await startPostfix(folder, { listen, nextHop: sinkPort }, postfix)
  setting.undo.defer(() => child.stop())
  await greeted(child, listen, setting.signal)
  return { deferd: daemon, postfix: { name: 'postfix', child, port: listen } }
}

/** Takes the turns of all rounds after one that warms up. `share` is the part of the messages that Postfix gets. */
export async function takeTurnsBeside<T>(
  { rounds }: Setting,
  relays: Relays,
  share: number,
  take: (relay: Loaded, part: number) => Promise<T>,
): Promise<Turns<T>> {
  const turns = { deferd: [] as T[], postfix: [] as T[] }
  for (let round = -1; round < rounds; round++)
    for (const name of rotated(NAMES, Math.max(0, round))) {
      const relay = relays[name]
      if (relay === undefined) continue
      const turn = await take(relay, name === 'postfix' ? share : 1)
      if (round >= 0) turns[name].push(turn)
    }
  return turns
}
