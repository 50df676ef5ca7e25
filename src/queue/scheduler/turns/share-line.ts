/**
 * The flows of one class in the order of their shares. A flow has one head, which is charged to its share when the flow gets its place, and
 * refunded when it leaves without a start. To offer as many heads as a destination has room for would let one share take all of it.
 */
import type { FairShares } from '../../../config/values/mail-classes.ts'
import type { Flow } from './flow.ts'
import { ShareTags } from './share-tags.ts'
import { TagHeap } from './tag-heap.ts'

interface Head<D> {
  readonly flow: Flow<D>
  readonly number: number
  readonly tag: number
  readonly recipients: number
}

export class ShareLine<D> {
  readonly #shares: () => FairShares
  readonly #tags = new ShareTags()
  /** Numbers of heads by tag; some may have left. */
  readonly #order = new TagHeap()
  readonly #heads = new Map<number, Head<D>>()
  readonly #ofFlow = new Map<Flow<D>, Head<D>>()
  #last = 0

  constructor(shares: () => FairShares) {
    this.#shares = shares
  }

  get size(): number {
    return this.#ofFlow.size
  }

  get flows(): Iterable<Flow<D>> {
    return this.#ofFlow.keys()
  }

  /** Gives a flow a place; has no effect on one that has. */
  add(flow: Flow<D>): void {
    if (this.#ofFlow.has(flow)) return
    const recipients = flow.jobs.peek()?.request.recipients.length ?? 0
    const head = { flow, number: ++this.#last, tag: this.#tags.charge(flow.share, recipients, this.#weightOf(flow)), recipients }
    this.#ofFlow.set(flow, head)
    this.#heads.set(head.number, head)
    this.#order.push(head.tag, head.number)
  }

  /** Takes the place of a flow that does not start. */
  delete(flow: Flow<D>): void {
    const head = this.#remove(flow)
    if (head !== undefined) this.#tags.refund(flow.share, head.recipients, this.#weightOf(flow))
  }

  /** Counts a delivery to recipients. With `isTurn`, it is that of the place of the flow, which ends. */
  begun(flow: Flow<D>, recipients: number, isTurn: boolean): void {
    const head = isTurn ? this.#remove(flow) : undefined
    if (head === undefined) return this.count(flow, recipients)
    this.#tags.refund(flow.share, head.recipients - recipients, this.#weightOf(flow))
    this.#tags.started(head.tag)
  }

  /** Counts a delivery that has no place. */
  count(of: Pick<Flow<D>, 'share'>, recipients: number): void {
    const tag = this.#tags.charge(of.share, recipients, this.#weightOf(of))
    // Other heads of the share may be far ahead, and the present is before all heads.
    this.#tags.started(Math.min(tag, this.#firstTag))
  }

  /** The flows in the order of their tags. Flows may be deleted meanwhile, and their deliveries begun. */
  *inOrder(): Generator<Flow<D>> {
    const passed: Head<D>[] = []
    try {
      for (let head = this.#first(); head !== undefined; head = this.#first()) {
        passed.push(head)
        this.#order.pop()
        yield head.flow
      }
    } finally {
      for (const { tag, number } of passed) if (this.#heads.has(number)) this.#order.push(tag, number)
    }
  }

  get #firstTag(): number {
    this.#first()
    return this.#order.tag
  }

  /** The first head that has not left. */
  #first(): Head<D> | undefined {
    for (let number = this.#order.first; number !== undefined; number = this.#order.first) {
      const head = this.#heads.get(number)
      if (head !== undefined) return head
      this.#order.pop()
    }
    return undefined
  }

  #remove(flow: Flow<D>): Head<D> | undefined {
    const head = this.#ofFlow.get(flow)
    if (head === undefined) return undefined
    this.#ofFlow.delete(flow)
    this.#heads.delete(head.number)
    return head
  }

  #weightOf({ share }: Pick<Flow<D>, 'share'>): number {
    return this.#shares().weightOf(share)
  }
}
