import { apiKilled } from './f01-api-killed.ts'
import { shortTest } from './short.ts'

shortTest(apiKilled)
