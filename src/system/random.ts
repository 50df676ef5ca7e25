/**
 * The Random port. Draws are named, so that a new draw in one part of the program does not change the draws of another part.
 * Equal seeds give equal runs.
 */
export interface Random {
  /** A number in [0, 1) for this key. A seeded source always returns the same number for a key. */
  draw(key: string): number
  /** A sequence of numbers in [0, 1) that is independent of all others. A later call with the same name continues the sequence. */
  stream(name: string): () => number
}

/** Octets of the sequence of this name. */
export function randomOctets(random: Random, name: string, length: number): Buffer {
  const next = random.stream(name)
  return Buffer.from(Array.from({ length }, () => Math.floor(next() * 256)))
}

/** The mulberry32 generator, with 32 bits of state. It is defined independently of the programming language. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** FNV-1a hash (32 bits), which derives a seed from a name. */
function hash(text: string, basis: number): number {
  let h = (basis ^ 0x811c9dc5) >>> 0
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0
  return h
}

/** A Random whose numbers depend only on the seed and on the names. */
export function seededRandom(seed: number): Random {
  const streams = new Map<string, () => number>()
  return {
    draw: (key) => mulberry32(hash(key, seed))(),
    stream(name) {
      let next = streams.get(name)
      if (next === undefined) streams.set(name, (next = mulberry32(hash(name, seed))))
      return next
    },
  }
}
