/**
 * What happens next, in order: a binary heap of (time, sequence) on typed arrays. Events of one instant come in the order in which
 * they were put in. Times are whole microseconds, an event is a whole number whose meaning is the model's.
 */
export class EventQueue {
  #times = new Float64Array(1024)
  #sequences = new Float64Array(1024)
  #events = new Int32Array(1024)
  #size = 0
  #sequence = 0

  /** The time of the event taken last. */
  now = 0

  get size(): number {
    return this.#size
  }

  put(time: number, event: number): void {
    if (this.#size === this.#times.length) this.#grow()
    const sequence = this.#sequence++
    let hole = this.#size++
    while (hole > 0) {
      const parent = (hole - 1) >> 1
      // An equal time came in earlier and stays in front: only a later parent gives way.
      if (this.#times[parent]! <= time) break
      this.#move(parent, hole)
      hole = parent
    }
    this.#set(hole, time, sequence, event)
  }

  /** Takes the next event and sets the time to it; undefined when nothing is left to happen. */
  take(): number | undefined {
    if (this.#size === 0) return undefined
    const event = this.#events[0]!
    this.now = this.#times[0]!
    const last = --this.#size
    this.#sink(this.#times[last]!, this.#sequences[last]!, this.#events[last]!)
    return event
  }

  /** Puts the event that stood last into the gap at the top, and down to its place. */
  #sink(time: number, sequence: number, event: number): void {
    const times = this.#times
    const sequences = this.#sequences
    let hole = 0
    for (;;) {
      let child = 2 * hole + 1
      if (child >= this.#size) break
      const right = child + 1
      if (right < this.#size && (times[right]! < times[child]! || (times[right] === times[child] && sequences[right]! < sequences[child]!)))
        child = right
      if (times[child]! > time || (times[child] === time && sequences[child]! > sequence)) break
      this.#move(child, hole)
      hole = child
    }
    this.#set(hole, time, sequence, event)
  }

  #move(from: number, to: number): void {
    this.#set(to, this.#times[from]!, this.#sequences[from]!, this.#events[from]!)
  }

  #set(at: number, time: number, sequence: number, event: number): void {
    this.#times[at] = time
    this.#sequences[at] = sequence
    this.#events[at] = event
  }

  #grow(): void {
    const times = new Float64Array(2 * this.#times.length)
    const sequences = new Float64Array(times.length)
    const events = new Int32Array(times.length)
    times.set(this.#times)
    sequences.set(this.#sequences)
    events.set(this.#events)
    this.#times = times
    this.#sequences = sequences
    this.#events = events
  }
}
