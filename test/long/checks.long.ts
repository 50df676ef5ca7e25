/** Generated mail through deferd and Postfix, with all tables of header_checks, body_checks and smtp_header_checks. */
import { compareChecks } from '../interop/checks-comparison.ts'
import { comparePatterns } from '../interop/patterns-comparison.ts'
import { CHECKS } from '../interop/checks-situations.ts'

compareChecks(Object.keys(CHECKS), 200)
comparePatterns(1000)
