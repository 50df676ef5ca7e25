import { comparePatterns } from './patterns-comparison.ts'

// More patterns are in test/long.
comparePatterns(60)
