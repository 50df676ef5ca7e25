/**
 * How contents are cut: every part but the last has 64 kB, and each is a copy of its own, so that it can be handed to
 * another thread without taking anything from the caller.
 */

export const CHUNK_BYTES = 65_536

/** The most chunks of one content; also what makes a chunk's row number out of a body's. */
export const CHUNKS_PER_BODY = 65_536

export function cut(pieces: readonly Uint8Array[]): Uint8Array[] {
  let rest = pieces.reduce((sum, piece) => sum + piece.byteLength, 0)
  const chunks: Uint8Array[] = []
  let chunk = new Uint8Array(0)
  let filled = 0
  for (const piece of pieces) {
    for (let from = 0; from < piece.byteLength;) {
      if (filled === chunk.byteLength) {
        chunk = new Uint8Array(Math.min(rest, CHUNK_BYTES))
        chunks.push(chunk)
        filled = 0
      }
      const part = piece.subarray(from, from + chunk.byteLength - filled)
      chunk.set(part, filled)
      filled += part.byteLength
      from += part.byteLength
      rest -= part.byteLength
    }
  }
  return chunks
}
