/** Planted bugs in the turns and the change of classes of mail. Each is found by the test file named here. */
import type { SafetyMutant } from './safety-mutants.ts'

const TURNS = 'test/queue/scheduler/turns/class-turns.test.ts'
const STORIES = 'test/stories/classes.test.ts'

const bug = (name: string, file: string, [replace, by]: readonly [string, string], test: string): SafetyMutant => ({
  name,
  file: `src/${file}`,
  replace,
  by,
  test,
})

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
    'store/sqlite/operate.ts',
    ['this.#setBand.run({ id: one.id, band,', 'this.#setBand.run({ id: one.id, band: one.band,'],
    STORIES,
  ),
]
