/** Whatever a far side says, at any point and cut into packets anyhow, is judged in time and judged right. */
import { test } from 'vitest'
import { repliesAreJudgedWell } from '../support/reply-fuzz.ts'

/** test/long has ten times as many. */
const REPLIES = 10_000

test(`${REPLIES} mutated replies`, { timeout: 120_000 }, () => repliesAreJudgedWell(REPLIES))
