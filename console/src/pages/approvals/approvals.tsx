import { ApprovalsPage } from '../../tasks/approvals-page.tsx'

export default ApprovalsPage
