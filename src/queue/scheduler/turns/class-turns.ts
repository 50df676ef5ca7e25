/** The order of turns: classes by their weights, and within a class one flow after the other, those first that were parked. */
import type { Band, MailClasses } from '../../../config/values/mail-classes.ts'
import { ClassTags } from './class-tags.ts'
import type { Flow } from './flow.ts'

interface Line<D> {
  readonly parked: Set<Flow<D>>
  readonly others: Set<Flow<D>>
}

export class ClassTurns<D> {
  readonly #classes: () => MailClasses
  readonly #lines = new Map<string, Line<D>>()
  readonly #tags = new ClassTags()

  constructor(classes: () => MailClasses) {
    this.#classes = classes
  }

  /** Number of flows that have a place. */
  get size(): number {
    let size = 0
    for (const { parked, others } of this.#lines.values()) size += parked.size + others.size
    return size
  }

  /** Appends a flow that has no place; has no effect on one that has. */
  add(flow: Flow<D>): void {
    const { name } = this.#classes().ofBand(flow.band)
    let line = this.#lines.get(name)
    if (line === undefined) this.#lines.set(name, (line = { parked: new Set(), others: new Set() }))
    if (flow.isParked) line.parked.add(flow)
    else if (!line.parked.has(flow)) line.others.add(flow)
    flow.isParked = false
  }

  delete(flow: Flow<D>): void {
    for (const { parked, others } of this.#lines.values()) {
      parked.delete(flow)
      others.delete(flow)
    }
  }

  /** The flows in the order of their turns, without those of classes that may not begin a delivery. Flows may be deleted meanwhile. */
  *inOrder(mayBegin: (band: Band) => boolean): Generator<Flow<D>> {
    const classes = this.#classes()
    for (const { name } of classes.compete ? this.#tags.inOrder(classes.all) : classes.all) {
      const line = this.#lines.get(name)
      for (const flows of line === undefined ? [] : [line.parked, line.others]) {
        for (const flow of flows) {
          if (!mayBegin(flow.band)) break
          yield flow
        }
      }
    }
  }

  /** Gives the flows their places anew after a change of the classes. */
  regroup(): void {
    const flows = [...this.#lines.values()].flatMap(({ parked, others }) => [...parked, ...others])
    this.#lines.clear()
    for (const flow of flows) this.add(flow)
  }

  begun(flow: Flow<D>, recipients: number): void {
    const classes = this.#classes()
    if (classes.compete) this.#tags.begun(classes.ofBand(flow.band), recipients)
  }
}
