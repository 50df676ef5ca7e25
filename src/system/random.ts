/** Chance as this machine has it: from the generator of the operating system, so that nobody can foretell a queue's draws. */
import { randomInt } from 'node:crypto'
import type { Random } from '../mail/random.ts'

/** The largest range that node:crypto draws from at once. */
const RANGE = 2 ** 48 - 1

const draw = (): number => randomInt(RANGE) / RANGE

export const systemRandom: Random = { draw, stream: () => draw }
