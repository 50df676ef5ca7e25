/**
 * The relays that are measured. Each takes mail on a port of 127.0.0.1 and hands all of it to the sink.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { checkOut, shortId } from './base-commit.ts'
import { freePort, greeted, output, startChild, type Child, type Command } from './child.ts'
import { HARAKA, startHaraka } from './haraka.ts'
import { writeMaps } from './maps.ts'
import type { ContestantName, Options } from './options.ts'
import { postfixIsMissing, postfixVersion, startPostfix } from './postfix.ts'

/** The working tree. */
export const ROOT = join(import.meta.dirname, '../..')

export interface Relay {
  readonly name: ContestantName
  /** The version, or the commit. */
  readonly about: string
  readonly child: Child
  readonly port: number
  /** Part of the messages that it gets, 1 for all. */
  readonly share: number
  /** The largest content that it can carry, in bytes. */
  readonly mostBytes: number
}

export interface Omitted {
  readonly name: ContestantName
  readonly reason: string
}

/** Environment of a run: its folder, the sink, and the actions at its end. */
export interface Place {
  readonly folder: string
  readonly sinkPort: number
  readonly signal: AbortSignal
  readonly undo: AsyncDisposableStack
}

export interface Field {
  readonly relays: readonly Relay[]
  readonly omitted: readonly Omitted[]
}

/** Starts all contestants that were asked for and can run here. */
export async function startContestants(options: Options, place: Place): Promise<Field> {
  const relays: Relay[] = []
  const omitted: Omitted[] = []
  for (const name of options.only) {
    const reason = await reasonAgainst(name, options)
    if (reason === null) relays.push(await startContestant(name, options, place))
    else omitted.push({ name, reason })
  }
  return { relays, omitted }
}

async function reasonAgainst(name: ContestantName, { base }: Options): Promise<string | null> {
  switch (name) {
    case 'base':
      return base === null ? '--base names no commit' : null
    case 'postfix':
      return await postfixIsMissing()
    case 'tree':
    case 'without-store':
    case 'maps':
    case 'haraka':
      return null
  }
}

async function startContestant(name: ContestantName, options: Options, place: Place): Promise<Relay> {
  const folder = join(place.folder, name)
  mkdirSync(folder)
  const port = await freePort()
  const { about, child } = await start(name, { options, place, folder, port })
  place.undo.defer(() => child.stop())
  await greeted(child, port, place.signal)
  return { name, about, child, port, ...limitsOf(name) }
}

const limitsOf = (name: ContestantName): Pick<Relay, 'share' | 'mostBytes'> => ({
  // Postfix takes several times the CPU time and needs no warm-up: with all messages it would take most of the run.
  share: name === 'postfix' ? 1 / 4 : 1,
  // Content beyond that is staged in the store, and this one keeps nothing.
  mostBytes: name === 'without-store' ? 256_000 : Infinity,
})

interface Start {
  readonly options: Options
  readonly place: Place
  readonly folder: string
  readonly port: number
}

async function start(name: ContestantName, facts: Start): Promise<{ readonly about: string; readonly child: Child }> {
  const { options, place, folder, port } = facts
  switch (name) {
    case 'tree':
      return { about: await treeVersion(), child: await startNode(name, deferd(ROOT, facts), folder) }
    case 'without-store':
      return { about: 'the working tree', child: await startNode(name, withoutStore(facts), folder) }
    case 'maps':
      return {
        about: 'the working tree with ten maps of 10,000 entries',
        child: await startNode(name, deferd(ROOT, facts, writeMaps(folder)), folder),
      }
    case 'base': {
      const checkout = await checkOut(ROOT, options.base ?? '', join(folder, 'checkout'), place.signal)
      place.undo.defer(() => checkout.remove())
      return { about: checkout.commit, child: await startNode(name, deferd(checkout.folder, facts), folder) }
    }
    case 'haraka':
      return { about: HARAKA, child: await startHaraka(folder, { listen: port, nextHop: place.sinkPort }, place.signal) }
    case 'postfix':
      return { about: await postfixVersion(), child: await startPostfix(folder, { listen: port, nextHop: place.sinkPort }) }
  }
}

const startNode = (name: string, command: Command, folder: string): Promise<Child> => startChild(name, command, join(folder, 'log'))

const deferd = (checkout: string, facts: Start, more: readonly string[] = []): Command => ({
  program: process.execPath,
  args: [join(checkout, 'bin/deferd.js'), 'start', ...settings(facts), ...more],
  cwd: facts.folder,
})

const withoutStore = (facts: Start): Command => ({
  program: process.execPath,
  args: [join(ROOT, 'scripts/relay-without-store.ts'), ...settings(facts)],
  cwd: facts.folder,
})

const settings = ({ folder, port, place }: Start): string[] =>
  [
    `queue_directory=${join(folder, 'queue')}`,
    `smtpd_listen=127.0.0.1:${port}`,
    `relayhost=[127.0.0.1]:${place.sinkPort}`,
    'myhostname=bench.test',
  ].flatMap((setting) => ['-o', setting])

/** The commit of the working tree, with a + when files differ from it. */
async function treeVersion(): Promise<string> {
  try {
    const changes = await output('git', ['status', '--porcelain', '--untracked-files=no'], ROOT)
    return `${await shortId(ROOT, 'HEAD')}${changes === '' ? '' : '+'}`
  } catch {
    return 'git names no commit'
  }
}
