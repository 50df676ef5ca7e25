import { compareChecks } from './checks-comparison.ts'

// All situations, with 200 messages each, are in test/long.
compareChecks(['header_checks with body_checks', 'mime_header_checks and nested_header_checks'], 40)
