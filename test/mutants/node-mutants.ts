/** Bugs that the simulation of three nodes must find: in the code of membership, and in the simulated connections to the database. */
import type { Mutant } from './mutants.ts'

const MEMORY = 'src/store/memory/memory-store.ts'
const NODES = 'test/support/memory-node-table.ts'
const LEASE = 'src/store/membership/node-lease.ts'
const OBSERVATIONS = 'src/store/membership/node-observations.ts'
const CHANGES = 'src/queue/scheduler/node-changes.ts'
const DATABASE = 'test/simulation/nodes/database.ts'
const BOTH_CLOCKS = 'return now.monotonic - sent.monotonic < time && now.wall - sent.wall < time'

export const NODE_MUTANTS: readonly Mutant[] = [
  {
    name: 'claimed mail is taken back at one node only',
    file: 'src/queue/scheduler/scheduler.ts',
    replace: 'this.#state.membership.recall({ messages, destination: null, ...options })',
    by: 'this.#state.membership.recall({ messages: [], destination: null, ...options })',
  },
  {
    name: 'mail that is being claimed during an operation enters memory',
    file: 'src/queue/scheduler/arriving-mail.ts',
    replace: 'requests.filter(({ message }) => this.#recalls.has(message.id))',
    by: 'requests.filter(({ message }) => this.#recalls.has(-message.id))',
  },
  {
    name: 'the claims of a silent node are not awaited',
    file: 'src/store/membership/recalls.ts',
    replace: 'if (given.length === answers.length) return',
    by: 'if (given.length >= 0) return',
  },
  { name: 'no fence', file: MEMORY, replace: 'if (owner.isFenced) return', by: 'if (owner.isFenced && owner.id < 0) return' },
  { name: 'a lease by the wall clock', file: LEASE, replace: BOTH_CLOCKS, by: 'return now.wall - sent.wall < time' },
  { name: 'a lease by the monotonic clock', file: LEASE, replace: BOTH_CLOCKS, by: 'return now.monotonic - sent.monotonic < time' },
  {
    name: 'deliveries begin without a lease',
    file: 'src/store/store-health.ts',
    replace: 'return this.#unavailable || !this.#holds()',
    by: 'return this.#unavailable || (!this.#holds() && this.#unavailable)',
  },
  {
    name: 'MAIL is sent without a lease',
    file: 'src/delivery/smtp/mail-transaction.ts',
    replace: 'if (this.#mail.holds()) return false',
    by: 'if (this.#mail.holds() || this.#transcript.leaseEnded !== true) return false',
  },
  {
    name: 'observations are kept across an outage',
    file: OBSERVATIONS,
    replace: 'at - before.at > lease / 2 ? NO_OBSERVATIONS.beats : before.beats',
    by: 'at < 0 ? NO_OBSERVATIONS.beats : before.beats',
  },
  { name: 'a takeover after half a lease', file: OBSERVATIONS, replace: 'at - since >= lease)', by: 'at - since >= lease / 2)' },
  {
    name: 'a takeover does not ask for a later beat',
    file: NODES,
    replace: 'this.#queue.nodes.get(node)?.beat === seenBeat',
    by: '(this.#queue.nodes.get(node)?.beat ?? -1) >= seenBeat',
  },
  {
    name: 'a takeover leaves the leases',
    file: 'src/store/memory/recovery.ts',
    replace: "({ leasedBy }) => leasedBy === owner, 'node')",
    by: "({ leasedBy }) => leasedBy === owner && owner < 0, 'node')",
  },
  {
    name: 'saved destinations are not loaded',
    file: CHANGES,
    replace: 'control.recall(isTaken)',
    by: "control.recall((name) => name === '' && isTaken(name))",
  },
  {
    name: 'due mail is not loaded',
    file: CHANGES,
    replace: 'if (isTaken(destination)) due.expect',
    by: 'if (isTaken(destination) && dueAt < 0) due.expect',
  },
  {
    name: 'arrivals are ignored',
    file: 'src/queue/scheduler/node-changes.ts',
    replace: '    if (due.length > 0) {\n      // The mail',
    by: '    if (due.length > 1e9) {\n      // The mail',
  },
  { name: 'no session', file: DATABASE, replace: 'return this.#current(name) === session', by: 'return this.#current(name) >= session' },
  {
    name: 'claims are not reconciled',
    file: DATABASE,
    replace: 'if (this.#claimsInDoubt === 0) return',
    by: 'if (this.#claimsInDoubt >= 0) return',
  },
]
