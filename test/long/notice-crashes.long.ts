import { test } from 'vitest'
import { noticesSurviveCrashes } from '../support/notice-crashes.ts'

test('10,000 crashes around the commits of notices: none lost, none doubled', () => noticesSurviveCrashes(10_000))
