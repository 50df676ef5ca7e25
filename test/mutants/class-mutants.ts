/** Planted bugs in the turns and the change of classes of mail, and in fair shares. Each is found by the test file named here. */
import type { SafetyMutant } from './safety-mutants.ts'

const TURNS = 'test/queue/scheduler/turns/class-turns.test.ts'
const STORIES = 'test/stories/classes.test.ts'
const SHARES = 'test/queue/scheduler/turns/share-turns.test.ts'
const BACKLOG = 'test/queue/scheduler/turns/share-backlog.test.ts'
const SHARE_STORIES = 'test/stories/fair-shares.test.ts'

const bug = (name: string, file: string, [replace, by]: readonly [string, string], test: string): SafetyMutant => ({
  name,
  file: `src/${file}`,
  replace,
  by,
  test,
})

/** The bugs that the simulation of fair shares finds too: those that the first designs had. */
const SIMULATED: readonly string[] = [
  'a reserve keeps the last free places, whoever has the others',
  'a share offers a head at the present for each place of its destinations',
  'a share pays for heads that leave without a start',
  'a share that had no mail has earned turns',
  'a backlog is charged out of the order of due times',
]

/** The simulation that finds them, for `hunt`. */
export const SHARE_SIMULATION = 'simulate.ts --shared'

export const CLASS_MUTANTS: readonly SafetyMutant[] = [
  bug(
    'a reserve keeps the last free places, whoever has the others',
    'queue/scheduler/turns/running-deliveries.ts',
    ['this.#below(above, classes) < places(reserved)', 'this.#all < places(reserved)'],
    TURNS,
  ),
  bug(
    'a class that had no mail has earned turns',
    'queue/scheduler/turns/class-tags.ts',
    ['return Math.max(this.#time, this.#ends.get(name) ?? 0)', 'return this.#ends.get(name) ?? 0'],
    TURNS,
  ),
  bug('classes have equal parts', 'queue/scheduler/turns/class-tags.ts', ['start + recipients / one.weight', 'start + recipients'], TURNS),
  bug(
    'the highest class goes on first at a busy destination',
    'queue/scheduler/turns/destination-mail.ts',
    [
      'order.indexOf(classes.ofBand(a.band)) - order.indexOf(classes.ofBand(b.band))',
      '0 * order.length + classes.ofBand(b.band).weight - classes.ofBand(a.band).weight',
    ],
    TURNS,
  ),
  bug(
    'mail in transfer is expected in the class that it had before a reclass',
    'queue/scheduler/deliveries.ts',
    ['this.#state.active.wasRecalled(job.request.message.id) ? undefined : [job.band]', '[job.band]'],
    STORIES,
  ),
  bug(
    'a reclass leaves recipients in their band',
    'store/sqlite/writing/operate.ts',
    ['this.#setBand.run({ id: one.id, band,', 'this.#setBand.run({ id: one.id, band: one.band,'],
    STORIES,
  ),
  bug(
    'a share offers a head at the present for each place of its destinations',
    'queue/scheduler/turns/share-line.ts',
    ['tag: this.#tags.charge(flow.share, recipients, this.#weightOf(flow))', 'tag: this.#tags.time'],
    SHARES,
  ),
  bug(
    'a share pays for heads that leave without a start',
    'queue/scheduler/turns/share-line.ts',
    ['if (head !== undefined) this.#tags.refund(', 'if (head !== undefined && head.number < 0) this.#tags.refund('],
    SHARES,
  ),
  bug(
    'a share that had no mail has earned turns',
    'queue/scheduler/turns/share-tags.ts',
    ['const start = Math.max(this.#time, this.#ends.get(key) ?? 0)', 'const start = this.#ends.get(key) ?? 0'],
    SHARES,
  ),
  bug(
    'a backlog is charged out of the order of due times',
    'queue/scheduler/turns/share-backlog.ts',
    ['of due) this.#add(', 'of due.toReversed()) this.#add('],
    BACKLOG,
  ),
  bug(
    'what becomes due before the place that was read is not read again',
    'queue/scheduler/turns/share-backlog.ts',
    ['if (this.#behind <= this.#after.dueAt)', 'if (this.#behind < 0)'],
    BACKLOG,
  ),
  bug(
    'mail that is given back goes to the end of its share',
    'queue/scheduler/turns/share-backlog.ts',
    ['this.#push(this.#tags.time, id)', 'this.#push(Number.MAX_SAFE_INTEGER, id)'],
    BACKLOG,
  ),
  bug(
    'mail that comes back goes behind the mail of its share that is due later',
    'queue/scheduler/turns/disorder.ts',
    ['if (this.#late.has(share)) this.#passing++', 'if (this.#late.has(share)) this.#passing += 0'],
    BACKLOG,
  ),
  bug(
    'a share pays for mail that was held or deleted',
    'queue/scheduler/turns/disorder.ts',
    ['this.#lost += recipients', 'this.#lost += 0 * recipients'],
    BACKLOG,
  ),
  bug(
    'a share pays for mail that was held or deleted where it is all of a claim',
    'queue/scheduler/turns/share-backlog.ts',
    ['this.#disorder.lost(missed)', 'if (claimed > 0) this.#disorder.lost(missed)'],
    SHARE_STORIES,
  ),
  bug(
    'an order of which nothing can be claimed is made anew',
    'queue/scheduler/turns/share-backlog.ts',
    ['if (claimed > 0 && !this.#isReading)', 'if (claimed >= 0 && !this.#isReading)'],
    BACKLOG,
  ),
  bug(
    'an order is made anew before each share has had its turn',
    'queue/scheduler/turns/disorder.ts',
    ['this.#taken >= shares', 'this.#taken <= shares'],
    BACKLOG,
  ),
  bug(
    'the first claim of mail that was held back is by due times',
    'queue/scheduler/due-queue.ts',
    ['if (this.#hasMuch(destination, band))', 'if (this.#hasMuch(destination, band) && band < 0)'],
    SHARE_STORIES,
  ),
  bug(
    'a share spends the slots of another',
    'queue/scheduler/preemption.ts',
    [
      "of({ band, share }: Pick<Job, 'band' | 'share'>): Preemption {",
      "of({ band }: Pick<Job, 'band' | 'share'>, share = NO_SHARE): Preemption {",
    ],
    SHARES,
  ),
  bug(
    'new mail passes the backlog of its destination',
    'queue/scheduler/due-queue.ts',
    ['if (this.#state.policies().shares === null) return false', 'if (this.#heap.size >= 0) return false'],
    SHARE_STORIES,
  ),
]

export const SHARE_MUTANTS: readonly SafetyMutant[] = CLASS_MUTANTS.filter(({ name }) => SIMULATED.includes(name))
