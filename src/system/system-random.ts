/** The Random port of the daemon. The generator is cryptographically secure, so that draws cannot be predicted. */
import { randomInt, randomUUID } from 'node:crypto'
import type { Random } from './random.ts'

/** Maximum range of node:crypto's randomInt. */
const RANGE = 2 ** 48 - 1

const draw = (): number => randomInt(RANGE) / RANGE

export const systemRandom: Random = { draw, stream: () => draw }

/** A new id that no other process uses (RFC 9562 §5.4). */
export const uniqueId = (): string => randomUUID()
