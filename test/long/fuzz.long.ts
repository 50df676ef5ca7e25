import { test } from 'vitest'
import { portion } from './portion.ts'
import { inFlatMemory } from '../support/flat-memory.ts'
import { repliesAreClassified } from '../support/reply-fuzz.ts'
import { nothingBreaks, sessionsAreTheSameHoweverCut } from '../support/session-fuzz.ts'

const ROUNDS = 20
const EACH = 5_000

test.runIf(portion('fuzz/segmentation').isIncluded)('100,000 sessions do not depend on segmentation', () =>
  inFlatMemory('sessions, cut', ROUNDS, (round) => sessionsAreTheSameHoweverCut(EACH, round)),
)

test.runIf(portion('fuzz/sessions').isIncluded)('100,000 sessions of mixed hostile input end without an internal error', () =>
  inFlatMemory('sessions, messy', ROUNDS, (round) => nothingBreaks(EACH, round)),
)

test.runIf(portion('fuzz/replies').isIncluded)('100,000 mutated replies are classified correctly and within the time limits', () =>
  inFlatMemory('replies', ROUNDS, (round) => repliesAreClassified(EACH, round)),
)
