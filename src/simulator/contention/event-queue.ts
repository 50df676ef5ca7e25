/**
 * Event queue of the models: a binary heap of (time, sequence) on typed arrays. Events of one time are taken in the order of
 * insertion. Times are in the unit of the model; an event is an integer that the model interprets.
 */
export class EventQueue {
  #times = new Float64Array(1024)
  #sequences = new Float64Array(1024)
  #events = new Int32Array(1024)
  #size = 0
  #sequence = 0

  /** Time of the event taken last. */
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
      // A parent with the same time was inserted earlier and keeps its place.
      if (this.#times[parent]! <= time) break
      this.#move(parent, hole)
      hole = parent
    }
    this.#set(hole, time, sequence, event)
  }

  /** Takes the next event and sets `now` to its time; undefined when the queue is empty. */
  take(): number | undefined {
    if (this.#size === 0) return undefined
    const event = this.#events[0]!
    this.now = this.#times[0]!
    const last = --this.#size
    this.#sink(this.#times[last]!, this.#sequences[last]!, this.#events[last]!)
    return event
  }

  /** Moves the last event to the top of the heap and down to its place. */
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
