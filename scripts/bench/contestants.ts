/**
 * The relays that are measured. Each takes mail on a port of 127.0.0.1 and hands all of it to the sink.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { checkOut } from './base-commit.ts'
import type { Case, SetUp } from './cases.ts'
import { output, type Child } from './child.ts'
import { deferdCommand, ROOT, startDeferd, treeVersion, type Deferd } from './deferd.ts'
import { HARAKA, installHaraka, startHaraka } from './haraka.ts'
import { writeMaps } from './maps.ts'
import type { ContestantName, Options } from './options.ts'
import { flushPostfix, postfixIsMissing, postfixVersion, startPostfix } from './postfix.ts'
import { reasonAgainstClient } from './smtp-source.ts'

/** The place of an instance. */
export interface Site {
  readonly folder: string
  readonly port: number
  /** Port for /metrics; null without. */
  readonly metrics: number | null
  readonly setUp: SetUp
}

export interface Contestant {
  readonly name: ContestantName
  /** The version, or the commit. */
  readonly about: string
  /** True if it takes several times the CPU time of the others: it gets a part of the messages. */
  readonly isSlow: boolean
  /** True if it has /metrics. */
  readonly hasMetrics: boolean
  /** True if its queue can be filled by the store of the working tree. */
  readonly hasStore: boolean
  /** The reason why it cannot run a case; null when it can. */
  readonly reasonAgainst: (load: Case) => string | null
  readonly start: (site: Site) => Promise<Child>
  /** Makes all mail of an instance due. */
  readonly flush: (site: Site) => Promise<void>
}

export interface Omitted {
  readonly name: ContestantName
  /** Null for all cases. */
  readonly case: string | null
  readonly reason: string
}

/** Environment of a run: its folder, the sinks, and the actions at its end. */
export interface Place {
  readonly folder: string
  /** Port of the sink to which an instance with these settings relays. */
  readonly sinkPort: (setUp: SetUp) => number
  readonly signal: AbortSignal
  readonly undo: AsyncDisposableStack
}

/** Prepares the contestants that were asked for and can run here. */
export async function prepareContestants(options: Options, place: Place) {
  const contestants: Contestant[] = []
  const omitted: Omitted[] = []
  for (const name of options.only) {
    const reason = await reasonAgainst(name, options)
    if (reason === null) contestants.push(withClient(await prepare(name, options, place)))
    else omitted.push({ name, case: null, reason })
  }
  return { contestants, omitted }
}

/** The contestant, which runs only the cases whose client program is installed. */
const withClient = (contestant: Contestant): Contestant => ({
  ...contestant,
  reasonAgainst: (load) => reasonAgainstClient(load) ?? contestant.reasonAgainst(load),
})

async function reasonAgainst(name: ContestantName, { base }: Options): Promise<string | null> {
  switch (name) {
    case 'base':
      return base === null ? '--base names no commit' : null
    case 'postfix':
      return await postfixIsMissing()
    case 'tree':
    case 'without-store':
    case 'maps':
    case 'limits':
    case 'shares':
    case 'without-headers':
    case 'haraka':
      return null
  }
}

async function prepare(name: ContestantName, options: Options, place: Place): Promise<Contestant> {
  const folder = join(place.folder, name)
  mkdirSync(folder)
  switch (name) {
    case 'tree':
      return deferd(name, await treeVersion(), place, { checkout: ROOT, script: 'bin/deferd.js' })
    case 'without-store': {
      const program = { checkout: ROOT, script: 'scripts/relay-without-store.ts', hasLauncher: false } as const
      const contestant = deferd(name, 'the working tree', place, program)
      return { ...contestant, hasMetrics: false, hasStore: false, reasonAgainst: reasonWithoutStore }
    }
    case 'maps': {
      const program = { checkout: ROOT, script: 'bin/deferd.js', more: writeMaps(folder) }
      return deferd(name, 'the working tree with ten maps of 10,000 entries', place, program)
    }
    case 'limits':
      return deferd(name, 'the working tree with limits of the queue', place, { checkout: ROOT, script: 'bin/deferd.js', more: LIMITS })
    case 'shares': {
      const program = { checkout: ROOT, script: 'bin/deferd.js', more: ['-o', 'fair_share=yes'] }
      return deferd(name, 'the working tree with fair shares of senders', place, program)
    }
    case 'without-headers': {
      const program = { checkout: ROOT, script: 'bin/deferd.js', more: ['-o', 'queue_index_headers=no'] }
      return deferd(name, 'the working tree without Subject, From and Message-ID in its index', place, program)
    }
    case 'base': {
      const checkout = await checkOut(ROOT, options.base ?? '', join(folder, 'checkout'), place.signal)
      place.undo.defer(() => checkout.remove())
      const contestant = deferd(name, checkout.commit, place, { checkout: checkout.folder, script: 'bin/deferd.js' })
      return { ...contestant, hasStore: false, reasonAgainst: reasonAgainstBase }
    }
    case 'haraka':
      await installHaraka(folder, place.signal)
      return haraka(folder, place)
    case 'postfix':
      return postfix(await postfixVersion(), place)
  }
}

/** Limits that are not reached. */
const LIMITS = [
  'queue_message_limit=1000000',
  'queue_size_limit=100G',
  'queue_share_message_limit=90%',
  'queue_share_size_limit=90%',
].flatMap((setting) => ['-o', setting])

function deferd(name: ContestantName, about: string, { sinkPort }: Place, program: Deferd): Contestant {
  return {
    name,
    about,
    isSlow: false,
    hasMetrics: true,
    hasStore: true,
    reasonAgainst: (load) => (load.kind === 'store' && name !== 'tree' ? 'the store alone is that of the working tree' : null),
    start: (site) => startDeferd(name, program, { ...site, sinkPort: sinkPort(site.setUp) }),
    flush: async ({ folder }) => {
      const { program: node, args, cwd } = deferdCommand(program, folder, ['queue', 'flush', '--all', '--yes'])
      await output(node, args, cwd)
    },
  }
}

/** The reason why a relay that keeps nothing cannot run a case. */
function reasonWithoutStore({ kind, bytes, fate }: Case): string | null {
  if (kind === 'store') return 'it has no store'
  // Content beyond that is staged in the store.
  if (bytes > 256_000) return 'it takes messages of at most 256 kB'
  return fate === 'delivered' || fate === 'held' ? null : 'it keeps neither deferred mail nor notices'
}

function reasonAgainstBase({ kind }: Case): string | null {
  if (kind === 'store') return 'the store alone is that of the working tree'
  return kind === 'drain' ? 'the queue of a drain is filled by the working tree' : null
}

const haraka = (installed: string, { sinkPort }: Place): Contestant => ({
  name: 'haraka',
  about: HARAKA,
  isSlow: false,
  hasMetrics: false,
  hasStore: false,
  reasonAgainst: ({ kind, fate }) => {
    if (kind === 'store') return 'the store alone is that of the working tree'
    if (kind === 'drain') return 'it has no command that makes deferred mail due'
    return fate === 'held' ? 'it has no mail on hold' : null
  },
  start: ({ folder, port, setUp }) =>
    startHaraka(installed, folder, { listen: port, nextHop: sinkPort(setUp), isDeferring: setUp === 'deferring' }),
  flush: () => Promise.reject(new Error('haraka cannot flush its queue')),
})

const postfix = (about: string, { sinkPort }: Place): Contestant => ({
  name: 'postfix',
  about,
  isSlow: true,
  hasMetrics: false,
  hasStore: false,
  reasonAgainst: ({ kind }) => (kind === 'store' ? 'the store alone is that of the working tree' : null),
  start: ({ folder, port, setUp }) => startPostfix(folder, { listen: port, nextHop: sinkPort(setUp) }, POSTFIX_SETTINGS[setUp]),
  flush: ({ folder }) => flushPostfix(folder),
})

const POSTFIX_SETTINGS: Readonly<Record<SetUp, Readonly<Record<string, string>>>> = {
  usual: {},
  metered: {},
  large: { message_size_limit: '40000000' },
  'smtp-sink': {},
  deferring: { minimal_backoff_time: '36000s', maximal_backoff_time: '36000s', queue_run_delay: '36000s' },
  holding: { smtpd_sender_restrictions: 'check_sender_access static:HOLD' },
}
