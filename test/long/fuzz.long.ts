import { test } from 'vitest'
import { inFlatMemory } from '../support/flat-memory.ts'
import { repliesAreJudgedWell } from '../support/reply-fuzz.ts'
import { nothingBreaks, sessionsAreTheSameHoweverCut } from '../support/session-fuzz.ts'

const ROUNDS = 20
const EACH = 5_000

test('100,000 sessions of which each is the same however it is cut', () =>
  inFlatMemory('sessions, cut', ROUNDS, (round) => sessionsAreTheSameHoweverCut(EACH, round)))

test('100,000 sessions of everything at once, and nothing breaks', () =>
  inFlatMemory('sessions, messy', ROUNDS, (round) => nothingBreaks(EACH, round)))

test('100,000 mutated replies are judged in time and judged right', () =>
  inFlatMemory('replies', ROUNDS, (round) => repliesAreJudgedWell(EACH, round)))
