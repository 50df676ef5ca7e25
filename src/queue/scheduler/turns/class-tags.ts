/**
 * Start-time fair queueing of classes (Goyal, Vin, Cheng 1996): the next start is that of the class with the smallest start tag. Tags are
 * numbers of recipients divided by the weight, so that a class that had no mail begins at the present and has earned nothing meanwhile.
 */
import type { SchedulingClass } from '../../../config/values/mail-classes.ts'

export class ClassTags {
  /** Virtual time: the tag of the last start. */
  #time = 0
  /** Tags of the ends of the last starts, by name. */
  readonly #ends = new Map<string, number>()

  startOf({ name }: SchedulingClass): number {
    return Math.max(this.#time, this.#ends.get(name) ?? 0)
  }

  begun(one: SchedulingClass, recipients: number): void {
    const start = this.startOf(one)
    this.#time = start
    this.#ends.set(one.name, start + recipients / one.weight)
  }

  /** The classes in the order of their start tags; of equal ones, the greater weight is first. */
  inOrder(classes: readonly SchedulingClass[]): readonly SchedulingClass[] {
    return classes.toSorted((a, b) => this.startOf(a) - this.startOf(b) || b.weight - a.weight)
  }
}
