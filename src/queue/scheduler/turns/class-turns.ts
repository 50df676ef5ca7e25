/**
 * The order of turns: classes by their weights. Within a class, flows have turns by the weights of their shares or, without fair shares, one
 * after the other, those first that were parked.
 */
import type { Band, SchedulingClass, TurnPolicies } from '../../../config/values/mail-classes.ts'
import { ClassTags } from './class-tags.ts'
import type { Flow } from './flow.ts'
import { ShareLine } from './share-line.ts'

/** Flows that have turns one after the other. */
class FlowLine<D> {
  readonly #parked = new Set<Flow<D>>()
  readonly #others = new Set<Flow<D>>()

  get size(): number {
    return this.#parked.size + this.#others.size
  }

  get flows(): Iterable<Flow<D>> {
    return [...this.#parked, ...this.#others]
  }

  add(flow: Flow<D>): void {
    if (flow.isParked) this.#parked.add(flow)
    else if (!this.#parked.has(flow)) this.#others.add(flow)
  }

  delete(flow: Flow<D>): void {
    this.#parked.delete(flow)
    this.#others.delete(flow)
  }

  begun(flow: Flow<D>, _recipients: number, isTurn: boolean): void {
    if (isTurn) this.delete(flow)
  }

  *inOrder(): Generator<Flow<D>> {
    yield* this.#parked
    yield* this.#others
  }
}

export class ClassTurns<D> {
  readonly #policies: () => TurnPolicies
  readonly #lines = new Map<string, FlowLine<D> | ShareLine<D>>()
  readonly #tags = new ClassTags()

  constructor(policies: () => TurnPolicies) {
    this.#policies = policies
  }

  /** Number of flows that have a place. */
  get size(): number {
    let size = 0
    for (const line of this.#lines.values()) size += line.size
    return size
  }

  /** Appends a flow that has no place; has no effect on one that has. */
  add(flow: Flow<D>): void {
    this.#lineOf(this.#classOf(flow)).add(flow)
    flow.isParked = false
  }

  #classOf({ band }: Flow<D>): SchedulingClass {
    return this.#policies().classes.ofBand(band)
  }

  #lineOf({ name }: SchedulingClass): FlowLine<D> | ShareLine<D> {
    let line = this.#lines.get(name)
    if (line === undefined) {
      const { shares } = this.#policies()
      line = shares === null ? new FlowLine() : new ShareLine(() => this.#policies().shares ?? shares)
      this.#lines.set(name, line)
    }
    return line
  }

  delete(flow: Flow<D>): void {
    for (const line of this.#lines.values()) line.delete(flow)
  }

  /** The flows in the order of their turns, without those of classes that may not begin a delivery. Flows may be deleted meanwhile. */
  *inOrder(mayBegin: (band: Band) => boolean): Generator<Flow<D>> {
    const { classes } = this.#policies()
    for (const { name } of classes.compete ? this.#tags.inOrder(classes.all) : classes.all) {
      for (const flow of this.#lines.get(name)?.inOrder() ?? []) {
        if (!mayBegin(flow.band)) break
        yield flow
      }
    }
  }

  /** Gives the flows their places anew after a change of the classes or the shares. */
  regroup(): void {
    const flows = [...this.#lines.values()].flatMap((line) => [...line.flows])
    this.#lines.clear()
    for (const flow of flows) this.add(flow)
  }

  /** Counts a delivery to recipients. With `isTurn`, it is that of the place of the flow, which ends. */
  begun(flow: Flow<D>, recipients: number, isTurn: boolean): void {
    const { classes } = this.#policies()
    if (classes.compete) this.#tags.begun(classes.ofBand(flow.band), recipients)
    this.#lineOf(classes.ofBand(flow.band)).begun(flow, recipients, isTurn)
  }
}
