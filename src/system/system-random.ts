/** The Random port of the daemon. The generator is cryptographically secure, so that draws cannot be predicted. */
import { randomInt } from 'node:crypto'
import type { Random } from './random.ts'

/** Maximum range of node:crypto's randomInt. */
const RANGE = 2 ** 48 - 1

const draw = (): number => randomInt(RANGE) / RANGE

export const systemRandom: Random = { draw, stream: () => draw }
