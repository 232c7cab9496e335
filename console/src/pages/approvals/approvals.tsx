import { ApprovalsPage } from './approvals-page.tsx'

export default ApprovalsPage
