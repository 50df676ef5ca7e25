/** Mutated replies at any stage and in any segmentation: each gets the right outcome within its time limit. */
import { test } from 'vitest'
import { repliesAreClassified } from '../../support/reply-fuzz.ts'

/** test/long has 100,000. */
const REPLIES = 3_000

test(`${REPLIES} mutated replies`, { timeout: 120_000 }, () => repliesAreClassified(REPLIES))
