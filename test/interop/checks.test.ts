import { compareChecks } from './checks-comparison.ts'

// All situations, with 200 messages each, are in test/long.
compareChecks(['header_checks with body_checks'], 40)
